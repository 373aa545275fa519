import type { EventType, ThreadEvent } from "./events.js";
import type { Json } from "./json.js";
import type { KeyValue } from "./kv.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { ThreadInfo } from "./receipt.js";
import type { Scope } from "./scope.js";
import type { StandardSchemaV1 } from "./standard-schema.js";
import type { AnyState } from "./state.js";
import type { RequestThread, Thread } from "./thread.js";

export interface ThreadOptions<S> {
  /** Validates each read of the whole state. */
  schema?: StandardSchemaV1<unknown, S> | undefined;
}

export interface ByIdOptions<S> extends ThreadOptions<S> {
  /**
   * Owner that the thread must have. The first call on each `Thread` object checks the owner, and creates the thread if
   * it does not exist. Throws a `ForbiddenError` with code `not_the_owner` if the thread has a different owner.
   */
  owner?: string | undefined;
  /** TTL of the thread if the owner check creates it. Default: the TTL of the first write. */
  ttlSeconds?: number | undefined;
}

export interface NewThread<S> {
  /** Requires an API key. */
  id?: string | undefined;
  state?: Partial<S> | undefined;
  metadata?: { [key: string]: Json } | undefined;
  ttlSeconds?: number | undefined;
  /** Requires an API key. */
  owner?: string | undefined;
}

export interface ListOptions extends CallOptions {
  owner?: string | undefined;
  order?: "updated" | "created" | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
  /** Lists only threads whose metadata has these values. */
  metadata?: { [key: string]: string | number | boolean } | undefined;
}

/** A browser's request: a `Request`, or a request object of Node, Express or Fastify. */
export interface IncomingRequest {
  headers: Headers | { [name: string]: string | string[] | undefined };
}

/** The threads of a server. */
export interface Threads {
  create<S extends object = AnyState>(
    init?: NewThread<NoInfer<S>>,
    o?: Omit<WriteOptions, "ifMatch" | "ttlSeconds"> & ThreadOptions<S>,
  ): Promise<Thread<S>>;
  /** Returns a page of an owner's threads, or of all threads. */
  list(o?: ListOptions): Promise<{ threads: ThreadInfo[]; next?: string | undefined }>;
}

export interface Client {
  /** Returns the caller's own thread. */
  current<S extends object = AnyState>(o?: ThreadOptions<S> & { signedId?: string | undefined }): Thread<S>;
  /** Returns a thread by its ID. Intended for back ends. */
  thread<S extends object = AnyState>(id: string, o?: ByIdOptions<S>): Thread<S>;
  readonly threads: Threads;
  /** Returns the thread that belongs to the browser that sent `request` to this back end. */
  forRequest<S extends object = AnyState>(request: IncomingRequest, o?: ThreadOptions<S>): RequestThread<S>;
  /** Returns the scope `name`, such as `session:ada`. */
  scope(name: string): Scope;
  /** Returns a namespace of entries that are independent of threads. */
  kv(namespace: string): KeyValue;
  /** Iterates over the events of all threads. Requires an API key. */
  events(o?: {
    types?: readonly EventType[] | undefined;
    signal?: AbortSignal | undefined;
    lastEventId?: string | undefined;
    onOpen?: (() => void) | undefined;
    onClose?: (() => void) | undefined;
  }): AsyncIterableIterator<ThreadEvent>;
}
