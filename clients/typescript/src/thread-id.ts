import { sha256 } from "./bytes.js";

const encoder = new TextEncoder();

/** Derives a thread ID from an application's own ID, such as a chat ID. Access to the thread requires an API key. */
export async function threadIdFor(name: string, space = ""): Promise<string> {
  const text = [space, name].map((part) => `${encoder.encode(part).length}:${part}`).join("");
  return "thrd_" + (await sha256(text)).slice(0, 48);
}
