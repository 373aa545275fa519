import { EventEmitter } from "node:events";
import type { KeyvEntry, KeyvStoreAdapter, StoredData } from "keyv";
import { createAdmin } from "../admin/index.js";
import type { Entry, KeyValueBatch } from "../types/kv.js";
import type { ClientSource } from "../types/options.js";
import { type PlainEntry, putAll } from "./entries.js";

/** Maximum total length of the values in a batch request, in UTF-16 code units. */
const BATCH_LENGTH = 400_000;
const PAGE = 100;

export type KeyvThreadkeepOptions = ClientSource & {
  /** Namespace of the entries. Default: "keyv". */
  store?: string | undefined;
};

/** Stores Keyv's values as entries of one namespace. */
export class KeyvThreadkeep extends EventEmitter implements KeyvStoreAdapter {
  /** Keyv 5 reads `dialect` and `url`, and iterates over a store only if it knows the dialect. */
  opts: any = { dialect: "redis", url: "" };
  /** Set by Keyv, which prefixes each key with the namespace and a colon. */
  namespace?: string | undefined;
  readonly #kv: KeyValueBatch;

  constructor(options: KeyvThreadkeepOptions = {}) {
    super();
    this.#kv = createAdmin(options).kv(options.store ?? "keyv");
  }

  get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return this.#emitErrors(async () => valueOf(await this.#kv.get(key)));
  }

  getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return this.#emitErrors(async () => {
      const entries = await this.#kv.getMany(keys);
      return keys.map((key) => valueOf(entries.get(key)));
    });
  }

  set(key: string, value: any, ttl?: number): Promise<boolean> {
    return this.#emitErrors(async () => (await this.#kv.put(key, value, { ttlSeconds: secondsOf(ttl) })).ok);
  }

  setMany(entries: KeyvEntry[]): Promise<any> {
    return this.#emitErrors(async () => {
      const newEntries = entries.map(({ key, value, ttl }) => ({ key, body: value, ttlSeconds: secondsOf(ttl) }));
      await putAll(this.#kv, newEntries, lengthOf, BATCH_LENGTH);
      return entries.map(() => true);
    });
  }

  delete(key: string): Promise<boolean> {
    return this.#emitErrors(() => this.#kv.delete(key));
  }

  /** Deletes the keys of Keyv's namespace. Without a namespace, deletes all keys. */
  clear(): Promise<void> {
    return this.#emitErrors(async () => {
      if (this.namespace === undefined) {
        await this.#kv.clear();
        return;
      }
      const prefix = this.namespace + ":";
      for (;;) {
        const { keys } = await this.#kv.page({ prefix, limit: PAGE });
        if (!keys.length) return;
        await Promise.all(keys.map(({ key }) => this.#kv.delete(key)));
      }
    });
  }

  async *iterator<Value>(namespace?: string): AsyncGenerator<(string | Awaited<Value> | undefined)[], void> {
    const prefix = namespace === undefined ? undefined : namespace + ":";
    let cursor: string | undefined;
    do {
      const page = await this.#emitErrors(() => this.#kv.entries({ prefix, cursor }));
      for (const entry of page.entries) yield [entry.key, valueOf(entry)];
      cursor = page.next;
    } while (cursor);
  }

  /** Emits errors as events before throwing them, because Keyv treats a failed `get` as a miss. */
  async #emitErrors<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (this.listenerCount("error")) this.emit("error", error);
      throw error;
    }
  }
}

/** Decodes an entry. Keyv stores text, or objects if it does not have a serializer. */
function valueOf(entry: Entry | undefined): any {
  return entry?.contentType.startsWith("application/json") ? entry.json() : entry?.text();
}

const secondsOf = (ms: number | undefined): number | undefined => (ms ? Math.ceil(ms / 1_000) : undefined);

const lengthOf = ({ body }: PlainEntry): number => (typeof body === "string" ? body : JSON.stringify(body)).length;
