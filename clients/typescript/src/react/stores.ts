import { isPage } from "../environment.js";
import type { Client } from "../types/client.js";
import { type StoreOptions, ThreadStore } from "./thread-store.js";

const ABANDONED_MS = 30_000;
const stores = new WeakMap<Client, Map<string, ThreadStore>>();

/** Returns the store that components share for a client and a thread. On a server, each call creates a new store. */
export function storeOf(client: Client, o: StoreOptions): ThreadStore {
  const all = stores.get(client) ?? new Map<string, ThreadStore>();
  const key = keyOf(o);
  const known = all.get(key);
  if (known) return known;
  const store: ThreadStore = new ThreadStore(client, o, (isUsed) => {
    if (!isUsed) forget(client, o, store);
    else if (!all.has(key)) all.set(key, store);
  });
  if (isPage) {
    stores.set(client, all.set(key, store));
    // React may abandon a render, which then never subscribes
    setTimeout(() => store.isUsed || forget(client, o, store), ABANDONED_MS);
  }
  return store;
}

/** Drops a failed store after one second, unless a component uses it. The next render then creates a new store. */
export function forgetFailed(client: Client, o: StoreOptions, store: ThreadStore): void {
  setTimeout(() => store.isUsed || forget(client, o, store), 1_000);
}

const keyOf = ({ id, signedId }: StoreOptions): string => JSON.stringify([id, signedId]);

function forget(client: Client, o: StoreOptions, store: ThreadStore): void {
  const all = stores.get(client);
  if (all?.get(keyOf(o)) === store) all.delete(keyOf(o));
}
