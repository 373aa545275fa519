import { Doc } from "../json/rows.js";
import { kindAt } from "../json/text.js";
import { isMessage, messagesOf } from "./messages.js";

const docs = new WeakMap<ReadonlyMap<string, string>, Map<string, string[]>>();
/** Caches parsed messages by the JSON text of a key's value. When one key changes, only that key is parsed again. */
let texts = new Map<string, string[] | undefined>();

export function conversations(state: ReadonlyMap<string, string>): Map<string, string[]> {
  let found = docs.get(state);
  if (found) return found;
  const kept = new Map<string, string[] | undefined>();
  found = conversationsIn(state, (text) => {
    const messages = texts.has(text) ? texts.get(text) : messagesOf(new Doc(text));
    kept.set(text, messages);
    return messages;
  });
  texts = kept;
  docs.set(state, found);
  return found;
}

export function conversationsIn(
  state: ReadonlyMap<string, string>,
  read = (text: string) => messagesOf(new Doc(text)),
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [key, text] of state) {
    const messages = kindAt(text, 0) === "array" ? read(text) : undefined;
    if (messages) found.set(key, messages);
  }
  return found;
}

export const mainOf = (keys: readonly string[]) => keys.find((key) => key === "messages") ?? keys[0];

export const messagesIn = (values: string[]) => (2 * values.filter(isMessage).length > values.length ? values : undefined);
