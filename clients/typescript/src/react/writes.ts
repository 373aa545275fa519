import type { Client } from "../types/client.js";

const listeners = new WeakMap<Client, Set<() => void>>();

/** Calls `listener` after each write by a hook. */
export function onWrite(client: Client, listener: () => void): () => void {
  const all = listeners.get(client) ?? new Set();
  listeners.set(client, all.add(listener));
  return () => all.delete(listener);
}

export function announceWrite(client: Client): void {
  for (const listener of listeners.get(client) ?? []) listener();
}
