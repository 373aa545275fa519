import { Doc } from "../json/rows.js";
import { elementsOf, kindAt, membersOf, stringOf } from "../json/text.js";
import { itemOf, kindOf } from "./items.js";

/** A message or other item, converted from the format of a model provider or framework. */
export interface Message {
  role: string;
  side: "user" | "assistant" | "other";
  text: string;
  /** Parts other than text: tool calls, results, images. */
  parts: Part[];
  json: string;
}

export interface Part {
  name: string;
  json: string;
  text?: string;
  /** True if the part is initially open, because it is the main content of its message. */
  isOpen?: boolean;
}

type Members = ReadonlyMap<string, string>;

/** Number of elements to inspect at each end of an array that may contain messages. */
const SAMPLE = 5;

/** Roles in LangChain's member `type`. */
const LANGCHAIN = new Set(["human", "ai", "system", "tool", "function", "developer", "remove"]);

/** Names of members, other than `content`, that contain parts of a message. */
const PARTS = /^(tool_calls|invalid_tool_calls|toolInvocations|toolCalls|function_call|tool_call_id|reasoning_content|refusal|error)$/;

/** Returns the JSON of each message in an array, or undefined if the sampled elements are not messages or items. */
export function messagesOf(doc: Doc): string[] | undefined {
  if (kindAt(doc.text, 0) !== "array") return undefined;
  const elements = doc.children(doc.root);
  if (elements.length === 0) return undefined;
  const ends = [...elements.slice(0, SAMPLE), ...elements.slice(-SAMPLE)];
  if (!ends.every(({ value }) => isMessage(doc.slice(value)))) return undefined;
  return elements.map(({ value }) => doc.slice(value));
}

export function isMessage(json: string): boolean {
  if (kindAt(json, 0) !== "object") return false;
  const members = membersOf(json);
  return (formOf(members) ?? kindOf(members)) !== undefined;
}

interface Form {
  role: string;
  body: Members;
}

function formOf(members: Members): Form | undefined {
  const role = stringOf(members.get("role"));
  if (role !== undefined) return { role, body: members };
  const type = stringOf(members.get("type"));
  return (type === undefined ? undefined : ofLangChain(type, members)) ?? ofAgentKit(members) ?? ofAdk(members);
}

/** Parses LangChain's `{"type": "human", "content": ..}` and the same object inside `data` or `kwargs`. */
function ofLangChain(type: string, members: Members): Form | undefined {
  const data = members.get("data") ?? "";
  if (LANGCHAIN.has(type) && kindAt(data, 0) === "object") return { role: type, body: membersOf(data) };
  if (LANGCHAIN.has(type) && members.has("content")) return { role: type, body: members };
  const kwargs = members.get("kwargs") ?? "";
  if (type !== "constructor" || kindAt(kwargs, 0) !== "object") return undefined;
  const body = membersOf(kwargs);
  const role = stringOf(body.get("type"));
  return role !== undefined && LANGCHAIN.has(role) && body.has("content") ? { role, body } : undefined;
}

/** Matches AgentKit's `{"kind": "user", "content": ..}` and `{"kind": "agent", "result": {..}}`. */
function ofAgentKit(members: Members): Form | undefined {
  const kind = stringOf(members.get("kind"));
  if (kind === "user" && members.has("content")) return { role: kind, body: members };
  const result = members.get("result") ?? "";
  if (kind !== "agent" || kindAt(result, 0) !== "object") return undefined;
  const body = membersOf(result);
  const name = stringOf(body.get("agentName"));
  return { role: name ? `agent ${name}` : "agent", body };
}

/** Matches Google ADK's `{"event": {"author": .., "content": {"role": .., "parts": [..]}}}`. */
function ofAdk(members: Members): Form | undefined {
  const content = membersOf(membersOf(members.get("event") ?? "").get("content") ?? "");
  const role = stringOf(content.get("role"));
  return role !== undefined && content.has("parts") ? { role, body: content } : undefined;
}

const sideOf = (role: string) =>
  /^(user|human)$/.test(role) ? "user" : /^(assistant|ai|model|agent( .*)?)$/s.test(role) ? "assistant" : "other";

export function messageOf(json: string): Message {
  const members: Members = kindAt(json, 0) === "object" ? membersOf(json) : new Map();
  const form = formOf(members);
  const kind = form ? undefined : kindOf(members);
  const message: Message = kind ? itemOf(kind, members, json) : { role: form?.role ?? "?", side: sideOf(form?.role ?? "?"), text: "", parts: [], json };
  if (form) {
    const texts: string[] = [];
    for (const [name, raw] of form.body) {
      if (/^(content|contents|parts|text)$/.test(name)) read(raw, name, texts, message.parts);
      else if (name === "output") readOutput(raw, texts, message.parts);
      else if (PARTS.test(name) && !/^(null|\[\]|"")$/.test(raw)) message.parts.push({ name: name + toolsIn(raw), json: raw });
    }
    message.text = texts.join("\n\n");
  }
  // shows the JSON, because a message must not look empty
  if (!message.text && message.parts.length === 0) message.parts.push({ name: form || kind ? "message" : "value", json });
  return message;
}

function read(raw: string, name: string, texts: string[], parts: Part[]): void {
  const kind = kindAt(raw, 0);
  if (kind === "string") {
    const text = stringOf(raw);
    if (text) texts.push(text);
  } else if (kind === "array") {
    for (const part of elementsOf(raw)) {
      const text = stringOf(part) ?? textIn(part);
      if (text !== undefined) texts.push(text);
      else parts.push({ name: typeOf(part) ?? name, json: part });
    }
  } else if (raw !== "null") {
    parts.push({ name, json: raw });
  }
}

/** Adds text from an agent's output to `texts`, and adds tool calls and results to `parts`. */
function readOutput(raw: string, texts: string[], parts: Part[]): void {
  if (kindAt(raw, 0) !== "array") return void parts.push({ name: "output", json: raw });
  for (const part of elementsOf(raw)) {
    const type = typeOf(part);
    const content = type === "text" ? membersOf(part).get("content") : undefined;
    if (content !== undefined) read(content, "content", texts, parts);
    else parts.push({ name: type ?? "output", json: part });
  }
}

function toolsIn(raw: string): string {
  if (kindAt(raw, 0) !== "array") return "";
  const names = elementsOf(raw).flatMap((call) => {
    const members = membersOf(call);
    return stringOf(membersOf(members.get("function") ?? "").get("name") ?? members.get("name")) ?? [];
  });
  return names.length > 0 ? ": " + names.join(", ") : "";
}

function textIn(part: string): string | undefined {
  const text = kindAt(part, 0) === "object" ? stringOf(membersOf(part).get("text")) : undefined;
  return text !== undefined && /^(text|input_text|output_text|summary_text|reasoning_text)$/.test(typeOf(part) ?? "text") ? text : undefined;
}

function typeOf(part: string): string | undefined {
  return kindAt(part, 0) === "object" ? stringOf(membersOf(part).get("type")) : undefined;
}
