import { Doc } from "../json/rows.js";
import { kindAt } from "../json/text.js";
import { isMessage, messagesOf } from "./messages.js";

const conversationsByState = new WeakMap<ReadonlyMap<string, string>, Map<string, string[]>>();
/** Caches parsed messages by the JSON text of a key's value. When one key changes, only that key is parsed again. */
let cache = new Map<string, string[] | undefined>();

export function conversations(state: ReadonlyMap<string, string>): Map<string, string[]> {
  let found = conversationsByState.get(state);
  if (found) return found;
  const nextCache = new Map<string, string[] | undefined>();
  found = conversationsIn(state, (text) => {
    const messages = cache.has(text) ? cache.get(text) : messagesOf(new Doc(text));
    nextCache.set(text, messages);
    return messages;
  });
  cache = nextCache;
  conversationsByState.set(state, found);
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

export const mainKey = (keys: readonly string[]) => keys.find((key) => key === "messages") ?? keys[0];

export const ifMostlyMessages = (values: string[]) => (2 * values.filter(isMessage).length > values.length ? values : undefined);
