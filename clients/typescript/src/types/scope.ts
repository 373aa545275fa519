import type { CallOptions } from "./options.js";

export interface ScopeWriteOptions extends CallOptions {
  idempotencyKey?: string | undefined;
  /** Performs the write only if the scope has this version. */
  ifVersion?: number | undefined;
}

/** A set of keys with text values, for tools and applications. Separate from the state of a thread. */
export interface Scope {
  get(key: string, o?: CallOptions): Promise<string | null>;
  getMany(keys: readonly string[], o?: CallOptions): Promise<{ [key: string]: string | null }>;
  /** Sets a key. With `ifAbsent`, returns `ok: false` if the key already has a value. */
  set(
    key: string,
    value: string,
    o?: ScopeWriteOptions & { ttlSeconds?: number | undefined; ifAbsent?: boolean | undefined },
  ): Promise<{ ok: boolean; version: number }>;
  /** Returns whether the key had a value. */
  delete(key: string, o?: ScopeWriteOptions): Promise<boolean>;
  keys(prefix?: string, o?: CallOptions): Promise<string[]>;
  increment(key: string, by?: number | bigint, o?: ScopeWriteOptions): Promise<number | bigint>;
  /** Ends the scope and deletes its contents. */
  end(o?: ScopeWriteOptions): Promise<void>;
}
