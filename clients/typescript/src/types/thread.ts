import type { Checkpoints, ExistingWriteOptions } from "./checkpoint.js";
import type { Effects } from "./effect.js";
import type { EventOptions, ThreadEvent } from "./events.js";
import type { History } from "./history.js";
import type { Json } from "./json.js";
import type { Operation, OperationResult } from "./operation.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { Receipt, Snapshot, ThreadInfo } from "./receipt.js";
import type { AnyState, ArrayKey, CounterKey, Element, Key, Value } from "./state.js";
import type { Turn, TurnOptions, TurnState } from "./turn.js";

type ArrayRange = { tail?: number | undefined; offset?: number | undefined; limit?: number | undefined };

export interface ForkOptions extends CallOptions {
  /** ID of the new thread. Requires an API key. */
  id?: string | undefined;
  /** Owner of the new thread. Requires an API key. */
  owner?: string | undefined;
  metadata?: { [key: string]: Json } | undefined;
  fromCheckpoint?: number | undefined;
  /** Parts to copy. Default: all. */
  include?: readonly ("state" | "scope" | "history")[] | undefined;
  idempotencyKey?: string | undefined;
}

/** A conversation. Writes run one at a time, in call order. Reads do not wait for writes. */
export interface Thread<S extends object = AnyState> {
  /** ID without its signature. Undefined until the first response, unless you passed an ID yourself. */
  readonly id: string | undefined;
  /** ID with its signature, as sent in the header `x-thread-id`. */
  readonly signedId: string | undefined;

  info(o?: CallOptions): Promise<ThreadInfo>;
  /** Reads the whole state, or only `keys`. */
  read(o?: CallOptions & { keys?: readonly Key<S>[] | undefined }): Promise<Snapshot<S>>;
  /** Reads a value or a part of an array. Returns `undefined` for a missing key. */
  get<K extends Key<S>>(key: K, o?: CallOptions & ArrayRange): Promise<S[K] | undefined>;
  has(key: Key<S>, o?: CallOptions): Promise<boolean>;
  keys(o?: CallOptions): Promise<string[]>;

  set<K extends Key<S>>(key: K, value: Value<S, K>, o?: WriteOptions): Promise<Receipt>;
  delete(key: Key<S>, o?: WriteOptions): Promise<Receipt & { deleted: boolean }>;
  /** Appends to an array. With `maxRecords`, keeps only the newest `maxRecords` elements. */
  push<K extends ArrayKey<S>>(
    key: K,
    value: Element<S, K>,
    o?: WriteOptions & { maxRecords?: number | undefined },
  ): Promise<Receipt & { length: number }>;
  /** Adds to an integer. Returns a `bigint` if a `number` would not be exact. */
  increment(key: CounterKey<S>, by?: number | bigint, o?: WriteOptions): Promise<Receipt & { value: number | bigint }>;
  /** Performs all operations or none. */
  merge(operations: readonly Operation<S>[], o?: WriteOptions): Promise<Receipt & { results: OperationResult[] }>;
  /** Applies a JSON Merge Patch (RFC 7396). */
  patch(mergePatch: { [K in Key<S>]?: Json | undefined }, o?: WriteOptions): Promise<Receipt>;
  replace(state: S, o?: WriteOptions): Promise<Receipt>;
  clear(o?: WriteOptions): Promise<Receipt>;
  /**
   * Reads `keys`, and merges the operations that `change` returns. Starts over if another writer has changed the
   * thread. `change` must not await a write of the same `Thread`, because that write would wait for `update` to finish.
   */
  update<K extends Key<S>>(
    keys: K | readonly K[],
    change: (
      state: Partial<Pick<S, K>>,
    ) => readonly Operation<S>[] | undefined | void | Promise<readonly Operation<S>[] | undefined | void>,
    o?: Omit<WriteOptions, "ifMatch">,
  ): Promise<Receipt | undefined>;

  configure(
    change: { metadata?: { [key: string]: Json } | undefined; ttlSeconds?: number | undefined },
    o?: ExistingWriteOptions,
  ): Promise<ThreadInfo>;
  /** Ends the thread. A thread from `current()` continues as a new, empty thread. */
  destroy(o?: ExistingWriteOptions): Promise<void>;
  /** Takes the turn, which is a lease on the thread. First waits for this object's earlier writes to complete. */
  turn(o?: TurnOptions): Promise<Turn<S>>;
  turnState(o?: CallOptions): Promise<TurnState>;
  /** Copies the thread atomically. */
  fork<T extends object = S>(o?: ForkOptions): Promise<Thread<T>>;
  /** Gives the thread a new ID, which this object then uses. */
  rotate(o?: ExistingWriteOptions): Promise<ThreadInfo>;

  readonly checkpoints: Checkpoints<S>;
  readonly history: History;
  readonly effects: Effects;
  /** Iterates over the thread's events, from the time of the call until the thread ends. */
  events(o?: EventOptions): AsyncIterableIterator<ThreadEvent>;
}

/** The thread of a browser whose request a back end is serving. */
export interface RequestThread<S extends object = AnyState> extends Thread<S> {
  /** Returns the headers `x-thread-id` and `set-cookie` for the back end's response. */
  responseHeaders(): Headers;
}
