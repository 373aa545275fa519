import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * Addresses of pages contain hashes of ids, since browsers keep addresses and pass them around. They are the first digits of
 * SHA-256; the 8 digits in the lines that the service logs for operators are their beginning.
 */
const DIGITS = 16;
/** The shortest hash that an address may have: that of the log. */
const DIGITS_MIN = 8;
/** Ids that a tab remembers, for links that it has shown. */
const REMEMBERED = 20_000;

const known = new Map<string, string>();

export function hashOf(id: string): string {
  return bytesToHex(sha256(utf8ToBytes(id))).slice(0, DIGITS);
}

/** The hash of an id, which this tab can resolve from now on. */
export function remember(id: string): string {
  const hash = hashOf(id);
  known.delete(hash);
  known.set(hash, id);
  if (known.size > REMEMBERED) known.delete(known.keys().next().value!);
  return hash;
}

/** The id of that hash, if this tab has seen it. */
export function recall(hash: string): string | undefined {
  return known.get(hash) ?? [...known].find(([full]) => full.startsWith(hash))?.[1];
}

export function isHash(text: string): boolean {
  return new RegExp(`^[0-9a-f]{${DIGITS_MIN},${DIGITS}}$`).test(text);
}

/** Whether a text can be the id of a thread. No other text may become a part of a path. */
export const isThreadId = (text: string) => /^thrd_[a-zA-Z0-9]{27,59}$/.test(text);

export const hrefOfThread = (id: string, part = "") => `#/threads/${remember(id)}${part && "/" + part}`;
export const hrefOfArchive = (id: string) => `#/archives/${remember(id)}`;
