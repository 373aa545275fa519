import { hex } from "../bytes.js";

/** A new random key. `crypto.randomUUID` exists only on pages of https. */
export function idempotencyKey(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}
