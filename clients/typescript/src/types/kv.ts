import type { Json } from "./json.js";
import type { CallOptions } from "./options.js";

export interface KeyValueWriteOptions extends CallOptions {
  idempotencyKey?: string | undefined;
}

export interface Entry {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly etag: string;
  readonly expiresAt?: string | undefined;
  text(): string;
  json(): any;
}

/** An entry without its body. */
export interface EntryInfo {
  key: string;
  sizeBytes: number;
  contentType: string;
  etag?: string;
  updatedAt?: string | null;
  expiresAt?: string | null;
}

export interface NewEntry {
  key: string;
  body: Uint8Array | string | Json;
  contentType?: string | undefined;
  ttlSeconds?: number | undefined;
  ifAbsent?: boolean | undefined;
}

export interface PutResult {
  /** False if `ifAbsent` was set and the entry exists. */
  ok: boolean;
  version?: number;
  etag?: string;
}

/** Outcome of one put of `putMany`. */
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
}

/** A namespace of entries that are independent of threads. Requires an API key. */
export interface KeyValue {
  get(key: string, o?: CallOptions): Promise<Entry | undefined>;
  /** Stores an entry: strings as `text/plain`, bytes unchanged, and anything else as JSON. */
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
  /** Returns whether the entry existed. */
  delete(key: string, o?: KeyValueWriteOptions & { ifMatch?: string | undefined }): Promise<boolean>;
  page(o?: KeyPageOptions): Promise<{ keys: EntryInfo[]; next?: string | undefined }>;
  keys(prefix?: string, o?: CallOptions): AsyncIterableIterator<string>;
  /** Deletes the namespace. Returns the number of deleted entries. */
  clear(o?: KeyValueWriteOptions): Promise<number>;
}

/** A namespace with additional calls that read or write several entries at once. */
export interface KeyValueBatch extends KeyValue {
  /** Returns a page of entries with their bodies. A page holds up to 2 MiB, or more if its first entry is larger. */
  entries(
    o?: KeyPageOptions & { order?: "asc" | "desc" | undefined },
  ): Promise<{ entries: (Omit<EntryInfo, "etag" | "expiresAt"> & Entry)[]; next?: string | undefined }>;
  /** Reads any number of entries. The result omits missing entries. */
  getMany(keys: readonly string[], o?: CallOptions): Promise<Map<string, Entry>>;
  /** Stores up to 100 entries. Each entry succeeds or fails separately. */
  putMany(entries: readonly NewEntry[], o?: KeyValueWriteOptions): Promise<PutOutcome[]>;
  /** Sets the default TTL of entries and the idle TTL of the namespace. */
  configure(
    settings: { defaultTtlSeconds?: number | null | undefined; idleTtlSeconds?: number | null | undefined },
    o?: KeyValueWriteOptions,
  ): Promise<void>;
}
