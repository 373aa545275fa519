import { hex } from "../bytes.js";

/** Returns a random key. Does not use `crypto.randomUUID`, which requires https. */
export function idempotencyKey(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}
