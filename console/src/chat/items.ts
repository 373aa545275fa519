import { elementsOf, kindAt, membersOf, stringOf } from "../json/text.js";
import type { Message } from "./messages.js";

/** Items of OpenAI's Responses that are no messages: calls with their results, reasoning, and some more. */
const ITEM =
  /^(?:(?:function|custom_tool|mcp|web_search|file_search|computer|code_interpreter|image_generation|local_shell|shell|apply_patch|tool_search)_call(?:_output)?|mcp_(?:list_tools|approval_request|approval_response)|reasoning|compaction|item_reference)$/;

/** Members that are a part of each item, or of its heading. */
const HEADING = new Set(["type", "id", "call_id", "status", "name", "server_label", "caller"]);

/** The kind of an item, by its members. */
export function kindOf(members: ReadonlyMap<string, string>): string | undefined {
  const type = stringOf(members.get("type"));
  return type !== undefined && ITEM.test(type) ? type : undefined;
}

/** An item as a message that says what it is. */
export function itemOf(kind: string, members: ReadonlyMap<string, string>, json: string): Message {
  const item: Message = { role: headingOf(kind, members), side: "other", text: "", parts: [], json };
  // a call that has its result shows this after its arguments
  const isResult = kind.endsWith("_output");
  const texts: string[] = [];
  for (const [name, raw] of members) {
    if (HEADING.has(name) || /^(?:null|""|\[\]|\{\})$/.test(raw)) continue;
    const text = stringOf(raw);
    if (name === "summary" || name === "content" || (name === "output" && isResult)) {
      const found = text !== undefined ? [text] : textsIn(raw);
      texts.push(...found);
      if (found.length > 0) continue;
    }
    const isOpen = /^(arguments|input|action|output|error)$/.test(name);
    item.parts.push(isOpen && text !== undefined ? { name, json: raw, text, isOpen } : { name, json: raw, isOpen });
  }
  item.text = texts.join("\n\n");
  return item;
}

/** A call with the name of its tool, a result with the call that it belongs to, or the kind in words. */
function headingOf(kind: string, members: ReadonlyMap<string, string>): string {
  const name = stringOf(members.get("name"));
  const call = stringOf(members.get("call_id"));
  if (kind.endsWith("_call_output")) return call ? `result of ${call}` : "result";
  if (kind.endsWith("_call") && name) return `call of ${name}${kind === "function_call" && call ? `, ${call}` : ""}`;
  return kind.replaceAll("_", " ") + (name ? ` ${name}` : "");
}

/** The texts of parts such as `{"type": "summary_text", "text": ".."}`. */
function textsIn(raw: string): string[] {
  if (kindAt(raw, 0) !== "array") return [];
  return elementsOf(raw).flatMap((part) => stringOf(membersOf(part).get("text")) ?? []);
}
