import type { Operation } from "../../types/operation.js";
import { digestOf } from "../names.js";

const MAX_KEY_BYTES = 256;
const encoder = new TextEncoder();

export type Texts = Map<string, string>;

type Message = { id: string };

/** Serializes messages by ID. Throws if two messages have the same ID. */
export function textsOf(messages: readonly Message[]): Texts {
  const texts: Texts = new Map();
  for (const message of messages) {
    if (!message.id) throw new TypeError("A message has no ID. Pass `generateId` to the stream that makes it.");
    if (texts.has(message.id)) throw new TypeError("Two messages have the same ID.");
    texts.set(message.id, JSON.stringify(message));
  }
  return texts;
}

/** Returns the messages of a stored chat. Ignores repeated IDs, and IDs without a message. */
export function messagesOf<M extends Message>(state: { [key: string]: any }): M[] {
  const byId = new Map<string, M>();
  for (const [key, value] of Object.entries(state)) {
    if (key.startsWith("m.")) byId.set(value.id, value);
  }
  const order = new Set<string>(state["order"] ?? []);
  return [...order].flatMap((id) => byId.get(id) ?? []);
}

/** Returns operations that turn `before` into `after` without changing other callers' messages. */
export async function changesOf(before: Texts, after: Texts): Promise<Operation[]> {
  const operations: Operation[] = [];
  for (const [id, text] of after) {
    if (before.get(id) === text) continue;
    if (!before.has(id)) operations.push({ op: "push", key: "order", value: id });
    operations.push({ op: "set", key: await keyOf(id), value: JSON.parse(text) });
  }
  for (const id of before.keys()) {
    if (!after.has(id)) operations.push({ op: "delete", key: await keyOf(id) });
  }
  return operations;
}

async function keyOf(id: string): Promise<string> {
  const key = "m." + id;
  const fits = encoder.encode(key).length <= MAX_KEY_BYTES && !/[\u0000-\u001f\u007f]/.test(key);
  return fits ? key : "m.~" + (await digestOf(id));
}
