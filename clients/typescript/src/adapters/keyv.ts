/** A storage adapter for Keyv. */

import { EventEmitter } from "node:events";
import type { KeyvEntry, KeyvStoreAdapter, StoredData } from "keyv";
import { createAdmin } from "../admin/index.js";
import type { Entry, KeyValueBatch } from "../types/kv.js";
import type { ClientSource } from "../types/options.js";
import { type PlainEntry, putAll } from "./entries.js";

/** One request has at most this many characters of values, if it has several. */
const BATCH_LENGTH = 400_000;
const PAGE = 100;

export type KeyvThreadkeepOptions = ClientSource & {
  /** The namespace of entries that has the values. Default: "keyv". */
  store?: string | undefined;
};

/** Keeps the values of Keyv as entries of one namespace. */
export class KeyvThreadkeep extends EventEmitter implements KeyvStoreAdapter {
  /** Keyv 5 iterates only over stores of dialects that it knows, and it reads both of these. */
  opts: any = { dialect: "redis", url: "" };
  /** Set by Keyv: its keys begin with it and a colon. */
  namespace?: string | undefined;
  readonly #kv: KeyValueBatch;

  constructor(options: KeyvThreadkeepOptions = {}) {
    super();
    this.#kv = createAdmin(options).kv(options.store ?? "keyv");
  }

  get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return this.#reported(async () => valueOf(await this.#kv.get(key)));
  }

  getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return this.#reported(async () => {
      const entries = await this.#kv.getMany(keys);
      return keys.map((key) => valueOf(entries.get(key)));
    });
  }

  set(key: string, value: any, ttl?: number): Promise<boolean> {
    return this.#reported(async () => (await this.#kv.put(key, value, { ttlSeconds: secondsOf(ttl) })).ok);
  }

  setMany(entries: KeyvEntry[]): Promise<any> {
    return this.#reported(async () => {
      const all = entries.map(({ key, value, ttl }) => ({ key, body: value, ttlSeconds: secondsOf(ttl) }));
      await putAll(this.#kv, all, lengthOf, BATCH_LENGTH);
      return entries.map(() => true);
    });
  }

  delete(key: string): Promise<boolean> {
    return this.#reported(() => this.#kv.delete(key));
  }

  /** Deletes the keys of Keyv's namespace, or all. */
  clear(): Promise<void> {
    return this.#reported(async () => {
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
      const page = await this.#reported(() => this.#kv.entries({ prefix, cursor }));
      for (const entry of page.entries) yield [entry.key, valueOf(entry)];
      cursor = page.next;
    } while (cursor);
  }

  /** Keyv takes a `get` that fails for a miss. So that its user sees the error, it is an event as well. */
  async #reported<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (this.listenerCount("error")) this.emit("error", error);
      throw error;
    }
  }
}

/** Keyv gives texts, or objects if it has no serializer. */
function valueOf(entry: Entry | undefined): any {
  return entry?.contentType.startsWith("application/json") ? entry.json() : entry?.text();
}

const secondsOf = (ms: number | undefined): number | undefined => (ms ? Math.ceil(ms / 1_000) : undefined);

const lengthOf = ({ body }: PlainEntry): number => (typeof body === "string" ? body : JSON.stringify(body)).length;
