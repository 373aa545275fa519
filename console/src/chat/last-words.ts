import { excerpt } from "../json/visible.js";
import { messageOf } from "./messages.js";

/** What a conversation ended with. */
export interface Words {
  role: string;
  text: string;
}

/** Units of words in a list. */
const TEXT_MAX = 200;
const ROLE_MAX = 30;

/** The last words among messages: those of the newest message with a text, or else what the newest message is about. */
export function lastWords(messages: readonly string[]): Words | undefined {
  const newestFirst = messages.toReversed().map(messageOf);
  const said = newestFirst.find(({ text }) => text.trim() !== "") ?? newestFirst[0];
  if (!said) return undefined;
  const text = said.text.trim() || said.parts[0]?.name || "";
  return { role: excerpt(said.role, ROLE_MAX), text: excerpt(text, TEXT_MAX) };
}
