import { excerpt } from "../json/visible.js";
import { messageOf } from "./messages.js";

export interface Preview {
  role: string;
  text: string;
}

const TEXT_MAX = 200;
const ROLE_MAX = 30;

/** Returns the newest message with text. If no message has text, returns a description of the newest message. */
export function previewOf(messages: readonly string[]): Preview | undefined {
  const newestFirst = messages.toReversed().map(messageOf);
  const message = newestFirst.find(({ text }) => text.trim() !== "") ?? newestFirst[0];
  if (!message) return undefined;
  const text = message.text.trim() || message.parts[0]?.name || "";
  return { role: excerpt(message.role, ROLE_MAX), text: excerpt(text, TEXT_MAX) };
}
