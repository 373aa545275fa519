/** State of a thread at a version. */
export interface Snapshot<S> {
  state: Partial<S>;
  version: number;
  etag: string;
}

/** Result of a write. */
export interface Receipt {
  version: number;
  sizeBytes: number;
  etag: string;
  /** Whether an earlier attempt had already performed the write. */
  replayed: boolean;
}

/** A thread without its state. Times are in RFC 3339 format. */
export interface ThreadInfo {
  id: string;
  exists: boolean;
  version: number;
  sizeBytes: number;
  limitBytes: number;
  /** Number of keys. */
  keys: number;
  metadata: { [key: string]: any };
  createdAt: string | null;
  updatedAt: string | null;
  expiresAt: string | null;
  ttlSeconds: number;
  owner?: string | null;
  signedId?: string | null;
}
