import type { Json } from "./json.js";
import type { CallOptions } from "./options.js";

export interface KeyValueWriteOptions extends CallOptions {
  idempotencyKey?: string | undefined;
}

/** An entry with its body. */
export interface Entry {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly etag: string;
  readonly expiresAt?: string;
  text(): string;
  json(): any;
}

/** An entry in a list. */
export interface EntryInfo {
  key: string;
  sizeBytes: number;
  contentType: string;
  etag?: string;
  updatedAt?: string | null;
  expiresAt?: string | null;
  /** The body, if the page was asked for bodies. */
  entry?: Entry;
}

export interface NewEntry {
  key: string;
  body: Uint8Array | string | Json;
  contentType?: string | undefined;
  ttlSeconds?: number | undefined;
  ifAbsent?: boolean | undefined;
}

export interface PutResult {
  /** False if `ifAbsent` found a value. */
  ok: boolean;
  version?: number;
  etag?: string;
}

/** The outcome of one of several puts. */
export interface PutOutcome {
  key: string;
  ok: boolean;
  version?: number;
  status?: number;
  code?: string;
  detail?: string;
}

export interface KeyPageOptions extends CallOptions {
  prefix?: string | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
  order?: "asc" | "desc" | undefined;
  /** Also reads the bodies. A page ends at 2 MiB, but has at least one entry. */
  bodies?: boolean | undefined;
}

/** Entries that outlive threads, in one namespace. Requires an API key. */
export interface KeyValue {
  get(key: string, o?: CallOptions): Promise<Entry | undefined>;
  /** Reads any number of entries. Missing ones are left out. */
  getMany(keys: readonly string[], o?: CallOptions): Promise<Map<string, Entry>>;
  /** A text is stored as `text/plain`, bytes as they are, and anything else as JSON. */
  put(
    key: string,
    body: Uint8Array | string | Json,
    o?: KeyValueWriteOptions & {
      contentType?: string | undefined;
      ttlSeconds?: number | undefined;
      ifAbsent?: boolean | undefined;
      ifMatch?: string | undefined;
    },
  ): Promise<PutResult>;
  /** Puts up to 100 entries, each with an outcome of its own. */
  putMany(entries: readonly NewEntry[], o?: KeyValueWriteOptions): Promise<PutOutcome[]>;
  /** Returns whether the entry existed. */
  delete(key: string, o?: KeyValueWriteOptions & { ifMatch?: string | undefined }): Promise<boolean>;
  page(o?: KeyPageOptions): Promise<{ keys: EntryInfo[]; next?: string }>;
  keys(prefix?: string, o?: CallOptions): AsyncIterableIterator<string>;
  /** Deletes the namespace, and returns how many entries it had. */
  clear(o?: KeyValueWriteOptions): Promise<number>;
  /** Sets how long entries live, and when the whole namespace ends if it is not used. */
  configure(
    settings: { defaultTtlSeconds?: number | null | undefined; idleTtlSeconds?: number | null | undefined },
    o?: KeyValueWriteOptions,
  ): Promise<void>;
}
