import { Doc } from "../json/rows.js";
import { messagesOf } from "./messages.js";

const docs = new WeakMap<ReadonlyMap<string, string>, Map<string, string[]>>();
/** Messages by the text that they were read from, so that a change of one key reads that key only. */
let texts = new Map<string, string[] | undefined>();

/** The keys of a state that hold messages. */
export function conversations(state: ReadonlyMap<string, string>): Map<string, string[]> {
  let found = docs.get(state);
  if (found) return found;
  found = new Map();
  const kept = new Map<string, string[] | undefined>();
  for (const [key, text] of state) {
    if (text.charCodeAt(0) !== 91) continue;
    const messages = texts.has(text) ? texts.get(text) : messagesOf(new Doc(text));
    kept.set(text, messages);
    if (messages) found.set(key, messages);
  }
  texts = kept;
  docs.set(state, found);
  return found;
}
