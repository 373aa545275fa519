import { hex } from "./bytes.js";

const encoder = new TextEncoder();

/** Returns the ID of the thread that an application calls `name`, such as the ID of a chat. For use with an API key. */
export async function threadIdFor(name: string, space = ""): Promise<string> {
  const text = [space, name].map((part) => `${encoder.encode(part).length}:${part}`).join("");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  return "thrd_" + hex(digest.slice(0, 24));
}
