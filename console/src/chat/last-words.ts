import { excerpt } from "../json/visible.js";
import { messageOf } from "./messages.js";

export interface Words {
  role: string;
  text: string;
}

const TEXT_MAX = 200;
const ROLE_MAX = 30;

/** Returns the newest message with text. If no message has text, returns a description of the newest message. */
export function lastWords(messages: readonly string[]): Words | undefined {
  const newestFirst = messages.toReversed().map(messageOf);
  const said = newestFirst.find(({ text }) => text.trim() !== "") ?? newestFirst[0];
  if (!said) return undefined;
  const text = said.text.trim() || said.parts[0]?.name || "";
  return { role: excerpt(said.role, ROLE_MAX), text: excerpt(text, TEXT_MAX) };
}
