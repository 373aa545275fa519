import { elementsOf, kindAt, membersOf, stringOf } from "../json/text.js";
import type { Message } from "./messages.js";

/** Item types of OpenAI's Responses API and Agents SDK that are not messages, such as calls, results and reasoning. */
const ITEM =
  /^(?:(?:function|custom_tool|mcp|web_search|file_search|computer|code_interpreter|image_generation|local_shell|shell|apply_patch|tool_search|hosted_tool)_call(?:_output|_result)?|mcp_(?:list_tools|approval_request|approval_response)|reasoning|compaction|item_reference)$/;

const HEADING = new Set(["type", "id", "call_id", "callId", "status", "name", "server_label", "caller"]);
const RESULT = /_call_(?:output|result)$/;

export function kindOf(members: ReadonlyMap<string, string>): string | undefined {
  const type = stringOf(members.get("type"));
  return type !== undefined && ITEM.test(type) ? type : undefined;
}

export function itemOf(kind: string, members: ReadonlyMap<string, string>, json: string): Message {
  const item: Message = { role: headingOf(kind, members), side: "other", text: "", parts: [], json };
  // an item may contain both a call and its result; the result then follows the arguments
  const isResult = RESULT.test(kind);
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

/** Returns a heading: the tool for a call, the call ID for a result, or the kind for any other item. */
function headingOf(kind: string, members: ReadonlyMap<string, string>): string {
  const name = stringOf(members.get("name"));
  const call = stringOf(members.get("call_id") ?? members.get("callId"));
  if (RESULT.test(kind)) return call ? `result of ${call}` : "result";
  if (kind.endsWith("_call") && name) return `call of ${name}${kind === "function_call" && call ? `, ${call}` : ""}`;
  return kind.replaceAll("_", " ") + (name ? ` ${name}` : "");
}

function textsIn(raw: string): string[] {
  const parts = kindAt(raw, 0) === "array" ? elementsOf(raw) : [raw];
  return parts.flatMap((part) => stringOf(membersOf(part).get("text")) ?? []);
}
