import { isTransient, ownError, ThreadDestroyedError, type ThreadkeepError, VersionMismatchError } from "../http/errors.js";
import { randomPause, sleep, withDeadline } from "../http/wait.js";
import { withRotationLock } from "../identity/lock.js";
import { internalsOf } from "../internals.js";
import { encode } from "../thread/encode.js";
import { idempotencyKey } from "../thread/idempotency-key.js";
import { Queue } from "../thread/queue.js";
import type { Client } from "../types/client.js";
import type { ThreadEvent } from "../types/events.js";
import type { Operation } from "../types/operation.js";
import type { WriteOptions } from "../types/options.js";
import type { Receipt } from "../types/receipt.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";
import type { Thread } from "../types/thread.js";
import { Listeners } from "./listeners.js";
import { lifeOf, Optimistic } from "./optimistic.js";
import { type FailedWrite, loadingSnapshot, type ThreadSnapshot, type ThreadStatus } from "./snapshot.js";
import { Sync } from "./sync.js";
import { announceWrite } from "./writes.js";

const READ_RETRY_MS = 2_000;
/** Time limit in ms for all attempts at a write. Long enough for a restart of the server, which takes a few seconds. */
const WRITE_TIMEOUT_MS = 10_000;
const MAX_PAUSE_MS = 2_000;

type WriteReceipt = Receipt & { value?: number | bigint };
type Send<R> = (own: any[], o: WriteOptions) => Promise<R>;

export interface StoreOptions {
  id?: string | undefined;
  signedId?: string | undefined;
  schema?: StandardSchemaV1<unknown, any> | undefined;
  initialState?: object | undefined;
}

export interface Actions extends Pick<Thread, "set" | "push" | "increment" | "delete" | "clear" | "merge"> {
  refresh(): Promise<void>;
  /** Ends the conversation and starts a new, empty conversation. */
  destroy(): Promise<void>;
}

export class ThreadStore {
  readonly actions: Actions;
  readonly #client: Client;
  readonly #thread: Thread;
  /** True if the caller chose the thread by ID. The store then does not move to a new thread after `destroy`. */
  readonly #isNamed: boolean;
  readonly #state: Optimistic;
  readonly #sync: Sync;
  readonly #queue = new Queue();
  readonly #listeners: Listeners;
  #snapshot: ThreadSnapshot;
  #ready: Promise<void> | undefined;
  #connection: "opening" | "open" | "closed" = "opening";
  #isDestroyed = false;
  #isEnding = false;
  #isFailed = false;
  #error: ThreadkeepError | undefined;
  #failed: readonly FailedWrite[] = [];
  #listening = new AbortController();

  constructor(client: Client, o: StoreOptions, onUse: (isUsed: boolean) => void) {
    const { id, signedId, schema } = o;
    this.#client = client;
    this.#isNamed = id !== undefined;
    this.#thread = id === undefined ? client.current(signedId === undefined ? { schema } : { signedId, schema }) : client.thread(id, { schema });
    this.#state = new Optimistic(o.initialState);
    this.#sync = new Sync(this.#thread, this.#state, schema !== undefined);
    this.#snapshot = loadingSnapshot(o.initialState);
    this.#listeners = new Listeners(
      () => {
        onUse(true);
        this.#start();
      },
      () => {
        onUse(false);
        this.#listening.abort();
      },
    );
    this.actions = this.#makeActions();
  }

  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.add(listener);

  readonly getSnapshot = (): ThreadSnapshot => this.#snapshot;

  get isUsed(): boolean {
    return this.#listeners.isRunning;
  }

  get isLoaded(): boolean {
    return this.#state.isKnown;
  }

  /** Resolves after the first read, even if the read fails. */
  ready(): Promise<void> {
    return (this.#ready ??= this.#read(this.#sync.readAll()).catch(() => {}));
  }

  #makeActions(): Actions {
    const thread = this.#thread;
    const write = <R extends WriteReceipt>(operations: readonly Operation[], o: WriteOptions = {}, send: Send<R>) =>
      quiet(this.#perform(operations, { ...o, idempotencyKey: o.idempotencyKey ?? idempotencyKey() }, send));
    return {
      set: (key, value, o) =>
        write([{ op: "set", key, value }], o, ([own], o) => thread.set(key, own.value, o)),

      push: (key, value, o = {}) =>
        write([{ op: "push", key, value, maxRecords: o.maxRecords }], o, ([own], o) => thread.push(key, own.value, o)),

      increment: (key, by = 1, o) =>
        write([{ op: "increment", key, by }], o, (_, o) => thread.increment(key, by, o)),

      delete: (key, o) => write([{ op: "delete", key }], o, (_, o) => thread.delete(key, o)),

      clear: (o) => write([{ op: "clear" }], o, (_, o) => thread.clear(o)),

      merge: (operations, o) => write(operations, o, (own, o) => thread.merge(own, o)),

      refresh: async () => {
        if (this.#isFailed && this.isUsed) this.#listen();
        await this.#read(this.#sync.readAll());
      },

      destroy: () => quiet(this.#queue.run(() => this.#destroy())),
    };
  }

  /** Shows a write immediately, and sends it after earlier writes. `retried` is set for a retry of a failed write. */
  async #perform<R extends WriteReceipt>(
    operations: readonly Operation[],
    o: WriteOptions,
    send: Send<R>,
    retried?: { life: string | undefined },
  ): Promise<R> {
    if (this.#isDestroyed) throw destroyed();
    const { json } = internalsOf(this.#client).service.settings;
    // copies the values, so that later changes to the caller's objects have no effect
    const own = operations.map((operation) =>
      "value" in operation ? { ...operation, value: json.parse(encode(json, operation.value)) as any } : operation,
    );
    const write = this.#state.add(own);
    this.#publish();
    return this.#queue.run(async () => {
      let isConfirmed = true;
      try {
        const receipt = await this.#retryUntilDeadline((signal) => {
          if (this.#isDestroyed) throw destroyed();
          this.#state.send(write);
          return this.#sendToCurrentLife((o) => send(own, o), { ...o, signal }, retried?.life);
        }, o.signal);
        isConfirmed = this.#state.confirm(write, receipt, receipt.value);
        this.#error = undefined;
        return receipt;
      } catch (error) {
        this.#state.reject(write);
        this.#recordError(error);
        if (!retried && isTransient(error)) {
          const { life } = this.#state;
          this.#keepFailed(own, error, () => this.#perform(own, o, send, { life }));
        }
        if (error instanceof ThreadDestroyedError) this.#end();
        throw error;
      } finally {
        this.#publish();
        announceWrite(this.#client);
        void this.#read(isConfirmed ? this.#sync.resume() : this.#sync.readAll()).catch(() => {});
      }
    });
  }

  async #retryUntilDeadline<R>(send: (signal: AbortSignal) => Promise<R>, outer: AbortSignal | undefined): Promise<R> {
    return withDeadline(WRITE_TIMEOUT_MS, outer, async (signal) => {
      let last: unknown;
      for (let tries = 0; ; tries++) {
        try {
          if (tries) await sleep(randomPause(50, tries, MAX_PAUSE_MS), signal);
          return await send(signal);
        } catch (error) {
          if (!isTransient(error)) throw error;
          if (signal.aborted) throw last ?? error;
          this.#recordError((last = error));
          this.#publish();
        }
      }
    });
  }

  /**
   * Sends a write to the thread that the page shows. If that thread has expired or another tab has replaced it, sends
   * the write to the new thread, which is created if necessary. Fails if `requiredLife` identifies an earlier thread.
   */
  async #sendToCurrentLife<R>(send: (o: WriteOptions) => Promise<R>, o: WriteOptions, requiredLife: string | undefined): Promise<R> {
    const { base, isExpired } = this.#state;
    const { id } = this.#thread;
    const own = o.life ?? (requiredLife === base.life ? undefined : requiredLife);
    let { life } = this.#state;
    if (own || !(life || isExpired)) return send({ ...o, life: own });
    let ifMatch = isExpired ? 0 : undefined;
    const check = () => {
      if (this.#thread.id !== id) throw destroyed();
    };
    for (let tries = 1; ; tries++) {
      try {
        return await send({ ...o, life, ifMatch: o.ifMatch ?? ifMatch });
      } catch (error) {
        if (tries > 2 || !(error instanceof VersionMismatchError)) throw error;
        check();
        const { etag, version } = await this.#thread.read({ keys: [], signal: o.signal });
        check();
        const next = lifeOf(etag);
        if (version && next === life) throw error; // the thread is the same, so the caller's own `ifMatch` failed
        this.#state.expire();
        life = version && next !== "unknown" ? next : undefined;
        ifMatch = life ? undefined : version;
      }
    }
  }

  #keepFailed(operations: readonly Operation[], error: ThreadkeepError, perform: () => Promise<Receipt>): void {
    let running: Promise<Receipt> | undefined;
    const replace = (...next: FailedWrite[]) => {
      this.#failed = this.#failed.flatMap((one) => (one.retry === retry ? next : one));
      this.#publish();
    };
    const discard = () => replace();
    const retryOnce = async () => {
      try {
        const receipt = await perform();
        discard();
        return receipt;
      } catch (error) {
        replace({ operations, error: ownError(error), retry, discard });
        throw error;
      } finally {
        running = undefined;
      }
    };
    const retry = () => (running ??= quiet(retryOnce()));
    this.#failed = [...this.#failed, { operations, error, retry, discard }];
  }

  /** Ends the thread that the page shows. If another tab has replaced that thread, shows the new thread instead. */
  async #destroy(): Promise<void> {
    if (!this.isLoaded && !this.#isDestroyed) await this.ready();
    const { life, base, isExpired, isKnown } = this.#state;
    let { id } = this.#thread;
    let ifMatch: string | number = isExpired ? 0 : base.version;
    let isEnded = true;
    this.#isEnding = true;
    try {
      if (!isKnown) {
        // reads only the ETag, because the first read failed, perhaps because the state does not match the schema
        const { version, etag } = await this.#thread.read({ keys: [] });
        ifMatch = version && etag;
        id = this.#thread.id;
      }
      await this.#thread.destroy(life ? { life } : { ifMatch });
    } catch (error) {
      const isNext = life || (isKnown && !ifMatch) || this.#thread.id !== id;
      if (!isNext || !(error instanceof VersionMismatchError)) {
        this.#recordError(error);
        this.#publish();
        throw error;
      }
      isEnded = false;
    } finally {
      this.#isEnding = false;
    }
    announceWrite(this.#client);
    this.#state.reset();
    this.#sync.reset();
    this.#error = undefined;
    this.#isDestroyed = isEnded && this.#isNamed && this.#thread.id === id;
    if (!this.#isDestroyed && this.isUsed) this.#listen();
    if (!isEnded) void this.#read(this.#sync.readAll()).catch(() => {});
    this.#publish();
  }

  #end(): void {
    this.#isDestroyed = true;
    this.#state.reset();
    this.#sync.reset();
    this.#publish();
  }

  #start(): void {
    if (!this.isLoaded) void this.ready();
    this.#ready = undefined;
    this.#listen();
  }

  #listen(): void {
    this.#listening.abort();
    this.#listening = new AbortController();
    this.#connection = "opening";
    this.#isFailed = false;
    void this.#follow(this.#listening.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const onOpen = () => {
      if (signal.aborted) return;
      this.#connection = "open";
      void this.#read(this.#sync.readAll()).catch(() => {});
    };
    const onClose = () => {
      if (signal.aborted) return;
      this.#connection = "closed";
      this.#publish();
    };
    try {
      for await (const event of this.#thread.events({ signal, onOpen, onClose })) {
        if (signal.aborted) return;
        await this.#handle(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#isFailed = true;
      this.#recordError(error);
    }
    if (!signal.aborted && !this.#isDestroyed && !this.#isFailed) this.#listen();
    this.#publish();
  }

  async #handle(event: ThreadEvent): Promise<void> {
    switch (event.type) {
      case "thread.created":
      case "thread.updated":
        void this.#read(this.#sync.handleChange(event)).catch(() => {});
        return;
      case "reset":
        void this.#read(this.#sync.readAll()).catch(() => {});
        return;
      case "thread.rotated":
        // another tab may have rotated the thread; `info` then learns the new ID from the cookie
        if (this.#thread.id === event.threadId) await withRotationLock(() => this.#thread.info()).catch(() => {});
        if (this.#thread.id !== event.newThreadId) this.#end();
        return;
      case "thread.destroyed":
        // ignores the event if this page has moved to a new thread, or is ending this thread
        if (this.#thread.id !== event.threadId || this.#isEnding) return;
        // ignores a late event if a new thread with this ID already exists
        if (this.#state.life && this.#state.life !== event.data.life) return;
        if (event.data.reason !== "expired") return this.#end();
        this.#state.expire();
        this.#publish();
    }
  }

  async #read(read: Promise<void>): Promise<void> {
    const { id } = this.#thread;
    try {
      await read;
      // another tab has started a new conversation
      if (this.#state.isExpired && id !== undefined && this.#thread.id !== id) this.#state.reset();
    } catch (error) {
      this.#recordError(error);
      if (isTransient(error)) this.#retryReadLater();
      else if (!this.isLoaded) this.#isFailed = true;
      throw error;
    } finally {
      this.#publish();
    }
  }

  #retryReadLater(): void {
    const { signal } = this.#listening;
    setTimeout(() => {
      if (!signal.aborted) void this.#read(this.#sync.readAll()).catch(() => {});
    }, READ_RETRY_MS);
  }

  #recordError(error: unknown): void {
    if ((error as Error | undefined)?.name === "AbortError") return; // the page aborted the call
    this.#error = ownError(error);
  }

  #status(): ThreadStatus {
    if (this.#isDestroyed) return "destroyed";
    if (this.#isFailed) return "error";
    if (this.#connection === "closed" || (this.#error && !this.isLoaded)) return "reconnecting";
    if (this.#state.isExpired) return "expired";
    return this.isLoaded && this.#connection === "open" ? "live" : "loading";
  }

  #publish(): void {
    const old = this.#snapshot;
    const next: ThreadSnapshot = {
      state: this.#state.state,
      version: this.#state.base.version,
      id: this.#thread.id,
      pending: this.#state.pending,
      status: this.#status(),
      error: this.#error,
      failed: this.#failed,
    };
    if ((Object.keys(next) as (keyof ThreadSnapshot)[]).every((key) => next[key] === old[key])) return;
    this.#snapshot = next;
    this.#listeners.call();
  }
}

const destroyed = () =>
  new ThreadDestroyedError("thread_destroyed", "thread_destroyed: The thread has ended.", { status: 410 });

/** Prevents an unhandled rejection. The hook reports the failure in `error`. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
