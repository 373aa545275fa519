import { Doc } from "../json/rows.js";
import { decoded, kindAt, member } from "../json/text.js";

/** A message of a conversation, in the forms of model providers, LangChain and the AI SDK. */
export interface Message {
  role: string;
  /** Its text; empty if it has none. */
  text: string;
  /** Its other parts, as JSON text: calls of tools, results, images. */
  parts: { name: string; json: string }[];
  /** The whole message as JSON text. */
  json: string;
}

/** Elements that are looked at to tell whether an array holds messages. */
const SAMPLE = 5;

/** Names that LangChain gives to roles in `type`. */
const LANGCHAIN = new Set(["human", "ai", "system", "tool", "function", "developer"]);

/** The messages in a value, as JSON texts: an array whose first and last elements have a role. */
export function messagesOf(doc: Doc): string[] | undefined {
  if (kindAt(doc.text, 0) !== "array") return undefined;
  const elements = doc.children(doc.root);
  if (elements.length === 0) return undefined;
  const ends = [...elements.slice(0, SAMPLE), ...elements.slice(-SAMPLE)];
  if (!ends.every(({ value }) => roleOf(doc.slice(value)))) return undefined;
  return elements.map(({ value }) => doc.slice(value));
}

/** The role of a message, if the text is one. */
export function roleOf(json: string): string | undefined {
  if (kindAt(json, 0) !== "object") return undefined;
  const root = { start: 0, end: json.length };
  const text = (name: string) => {
    const span = member(json, root, name);
    return span && kindAt(json, span.start) === "string" ? decoded(json, span) : undefined;
  };
  const role = text("role");
  if (role !== undefined) return role;
  const type = text("type");
  return type !== undefined && LANGCHAIN.has(type) ? type : undefined;
}

export function messageOf(json: string): Message {
  const message: Message = { role: roleOf(json) ?? "?", text: "", parts: [], json };
  if (kindAt(json, 0) !== "object") return { ...message, parts: [{ name: "value", json }] };
  const doc = new Doc(json);
  const texts: string[] = [];
  for (const { key, value } of doc.children(doc.root)) {
    const name = decoded(json, key!);
    const raw = doc.slice(value);
    if (name === "content" || name === "parts" || name === "text") read(raw, name, texts, message.parts);
    else if (/^(tool_calls|toolInvocations|function_call|tool_call_id|reasoning_content|refusal|error)$/.test(name) && raw !== "null") {
      message.parts.push({ name, json: raw });
    }
  }
  message.text = texts.join("\n\n");
  return message;
}

/** Reads content: text, or parts of which some are text. */
function read(raw: string, name: string, texts: string[], parts: Message["parts"]): void {
  const kind = kindAt(raw, 0);
  if (kind === "string") {
    texts.push(decoded(raw, { start: 0, end: raw.length }));
  } else if (kind === "array") {
    const doc = new Doc(raw);
    for (const { value } of doc.children(doc.root)) {
      const part = doc.slice(value);
      const text = kindAt(part, 0) === "string" ? { start: 0, end: part.length } : textIn(part);
      if (text) texts.push(decoded(part, text));
      else parts.push({ name: typeOf(part) ?? name, json: part });
    }
  } else if (raw !== "null") {
    parts.push({ name, json: raw });
  }
}

function textIn(part: string) {
  if (kindAt(part, 0) !== "object") return undefined;
  const root = { start: 0, end: part.length };
  const text = member(part, root, "text");
  return text && kindAt(part, text.start) === "string" && /^(text|input_text|output_text)$/.test(typeOf(part) ?? "text") ? text : undefined;
}

function typeOf(part: string): string | undefined {
  if (kindAt(part, 0) !== "object") return undefined;
  const type = member(part, { start: 0, end: part.length }, "type");
  return type && kindAt(part, type.start) === "string" ? decoded(part, type) : undefined;
}
