import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * Number of hash digits in a page's URL. URLs contain a SHA-256 hash instead of an ID, because browsers store and sync
 * URLs. The first 8 digits, which the service writes to its log, also work in a URL.
 */
const DIGITS = 16;
const DIGITS_MIN = 8;
const REMEMBERED_MAX = 20_000;

const idsByHash = new Map<string, string>();

export function hashOf(id: string): string {
  return bytesToHex(sha256(utf8ToBytes(id))).slice(0, DIGITS);
}

/** Returns the hash of an ID, and remembers the ID for `recall`. */
export function remember(id: string): string {
  const hash = hashOf(id);
  idsByHash.delete(hash);
  idsByHash.set(hash, id);
  if (idsByHash.size > REMEMBERED_MAX) idsByHash.delete(idsByHash.keys().next().value!);
  return hash;
}

export function recall(hash: string): string | undefined {
  return idsByHash.get(hash) ?? [...idsByHash].find(([full]) => full.startsWith(hash))?.[1];
}

export function isHash(text: string): boolean {
  return new RegExp(`^[0-9a-f]{${DIGITS_MIN},${DIGITS}}$`).test(text);
}

/** Returns whether `text` has the format of a thread ID, and may therefore become part of a path. */
export const isThreadId = (text: string) => /^thrd_[a-zA-Z0-9]{27,59}$/.test(text);

export const hrefOfThread = (id: string, part = "") => `#/threads/${remember(id)}${part && "/" + part}`;
export const hrefOfArchive = (id: string) => `#/archives/${remember(id)}`;
