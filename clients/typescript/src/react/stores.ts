import { isPage } from "../environment.js";
import type { Client } from "../types/client.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";
import { ThreadStore } from "./thread-store.js";

const ABANDONED_MS = 30_000;
const stores = new WeakMap<Client, Map<string, ThreadStore>>();

export interface StoreOptions {
  id?: string | undefined;
  signedId?: string | undefined;
  schema?: StandardSchemaV1<unknown, any> | undefined;
  initialState?: object | undefined;
}

/** The one store of a client and a thread. On a server, where nothing is kept, each call makes a new one. */
export function storeOf(client: Client, o: StoreOptions): ThreadStore {
  const all = stores.get(client) ?? new Map<string, ThreadStore>();
  const key = JSON.stringify([o.id, o.signedId]);
  const known = all.get(key);
  if (known) return known;
  const forget = () => {
    if (all.get(key) === store) all.delete(key);
  };
  const store: ThreadStore = new ThreadStore(client, o, (isUsed) => {
    if (!isUsed) forget();
    else if (!all.has(key)) all.set(key, store);
  });
  if (isPage) {
    stores.set(client, all.set(key, store));
    // a render that was given up never subscribes
    setTimeout(() => store.isUsed || forget(), ABANDONED_MS);
  }
  return store;
}

/** Makes a later attempt start over. */
export function forgetFailed(client: Client, o: StoreOptions, store: ThreadStore): void {
  setTimeout(() => {
    const all = stores.get(client);
    const key = JSON.stringify([o.id, o.signedId]);
    if (!store.isUsed && all?.get(key) === store) all.delete(key);
  }, 1_000);
}
