import { isPage } from "../environment.js";
import type { Client } from "../types/client.js";
import { type StoreOptions, ThreadStore } from "./thread-store.js";

const ABANDONED_MS = 30_000;
const stores = new WeakMap<Client, Map<string, ThreadStore>>();

/** Returns the store that components share for a client and a thread. On a server, each call creates a new store. */
export function storeOf(client: Client, o: StoreOptions): ThreadStore {
  const clientStores = stores.get(client) ?? new Map<string, ThreadStore>();
  const key = keyOf(o);
  const existing = clientStores.get(key);
  if (existing) return existing;
  const store: ThreadStore = new ThreadStore(client, o, (isUsed) => {
    if (!isUsed) forget(client, o, store);
    else if (!clientStores.has(key)) clientStores.set(key, store);
  });
  if (isPage) {
    stores.set(client, clientStores.set(key, store));
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
  const clientStores = stores.get(client);
  if (clientStores?.get(keyOf(o)) === store) clientStores.delete(keyOf(o));
}
