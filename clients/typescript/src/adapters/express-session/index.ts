import session, { type SessionData } from "express-session";
import { clientOf } from "../../client.js";
import { ConflictError, ThreadDestroyedError, ThreadkeepError, VersionMismatchError } from "../../http/errors.js";
import { idempotencyKey } from "../../thread/idempotency-key.js";
import { threadIdFor } from "../../thread-id.js";
import type { Client } from "../../types/client.js";
import type { ClientSource } from "../../types/options.js";
import type { Thread } from "../../types/thread.js";
import { Changes, type Values, valuesOf } from "./changes.js";

const MIN_TTL_SECONDS = 60;
const MAX_TTL_SECONDS = 946_080_000;

export type ThreadkeepStoreOptions = ClientSource & {
  /** Namespace for the thread IDs. Use a different prefix for each application. Default: "sess". */
  prefix?: string | undefined;
  /** Idle lifetime of a session whose cookie has no expiry. Default: one day. */
  ttlSeconds?: number | undefined;
};

type Callback<T = void> = ((error?: any, result?: T) => void) | undefined;

/**
 * Stores each property of a session under its own key. Each request saves only its own changes. Concurrent requests
 * therefore do not overwrite each other's changes.
 */
export class ThreadkeepStore extends session.Store {
  readonly #client: Client;
  readonly #prefix: string;
  readonly #ttlSeconds: number;
  readonly #base = new WeakMap<object, Values>();
  readonly #attempts = new WeakMap<object, { changes: string; key: string }>();

  constructor(options: ThreadkeepStoreOptions = {}) {
    super();
    this.#client = clientOf(options);
    this.#prefix = options.prefix ?? "sess";
    this.#ttlSeconds = options.ttlSeconds ?? 86_400;
  }

  override get(sid: string, callback?: (error: any, session?: SessionData | null) => void): void {
    this.#callbackify(this.#load(sid), callback as Callback<SessionData | null>);
  }

  override set(sid: string, data: SessionData, callback?: (error?: any) => void): void {
    this.#callbackify(this.#save(sid, data), callback);
  }

  override touch(sid: string, data: SessionData, callback?: (error?: any) => void): void {
    this.#callbackify(this.#touch(sid, data), callback);
  }

  override destroy(sid: string, callback?: (error?: any) => void): void {
    this.#callbackify(this.#destroy(sid), callback);
  }

  override createSession(...[request, data]: Parameters<session.Store["createSession"]>): ReturnType<session.Store["createSession"]> {
    const base = this.#base.get(data);
    const created = super.createSession(request, data);
    if (base) this.#base.set(created, base);
    return created;
  }

  async #load(sid: string): Promise<SessionData | null> {
    const { state, version } = await (await this.#thread(sid)).read();
    if (!version || !state["cookie"] || hasExpired(state as SessionData)) return null;
    const data = valuesOf(state);
    this.#base.set(data, state as Values);
    return data as unknown as SessionData;
  }

  async #save(sid: string, data: SessionData): Promise<void> {
    const mine = valuesOf(data);
    if (hasExpired(data)) return this.#destroy(sid);
    const base = this.#base.get(data);
    const thread = await this.#thread(sid);
    await unlessEnded(async () => {
      if (!base && (await this.#create(thread.id!, mine, data))) return;
      // a `Session` that was not loaded is new and known only to this request, so all its values are changes
      const before = base ?? (data instanceof session.Session ? {} : undefined);
      await this.#merge(thread, new Changes(before, mine), data);
      await this.#updateTtl(thread, base, mine);
    });
    this.#base.set(data, mine);
  }

  async #create(id: string, state: Values, data: SessionData): Promise<boolean> {
    const init = { id, state, ttlSeconds: this.#lifetime(state) };
    try {
      await this.#client.threads.create(init, { idempotencyKey: this.#keyOf(data, JSON.stringify(init)) });
      this.#attempts.delete(data);
      return true;
    } catch (error) {
      if (error instanceof ThreadkeepError && error.code === "thread_exists") return false;
      throw error;
    }
  }

  async #merge(thread: Thread, changes: Changes, data: SessionData): Promise<void> {
    const { unconditional } = changes;
    if (unconditional && !unconditional.length) return;
    try {
      if (unconditional) {
        await thread.merge(unconditional, { ifMatch: "*", idempotencyKey: this.#keyOf(data, JSON.stringify(unconditional)) });
        this.#attempts.delete(data);
        return;
      }
    } catch (error) {
      // another request replaced an array
      if (!(error instanceof ConflictError && error.code === "not_an_array")) throw error;
    }
    await thread.update(["cookie", ...changes.keys], (stored) => {
      // every session has a cookie; a thread without a cookie is not a session
      return stored["cookie"] ? changes.operationsFor(stored as Values) : undefined;
    });
  }

  /** Returns the idempotency key for `changes`. A retry uses the same key, because the first try may have succeeded. */
  #keyOf(data: SessionData, changes: string): string {
    const last = this.#attempts.get(data);
    const key = last?.changes === changes ? last.key : idempotencyKey();
    this.#attempts.set(data, { changes, key });
    return key;
  }

  async #updateTtl(thread: Thread, base: Values | undefined, mine: Values): Promise<void> {
    const ttlSeconds = this.#lifetime(mine);
    if (base && this.#lifetime(base) !== ttlSeconds) await thread.configure({ ttlSeconds }, { ifMatch: "*" });
  }

  async #touch(sid: string, data: SessionData): Promise<void> {
    const { cookie } = valuesOf({ cookie: data.cookie });
    await unlessEnded(async () => {
      await (await this.#thread(sid)).set("cookie", cookie, { ifMatch: "*" });
    });
    const base = this.#base.get(data);
    if (base && cookie) this.#base.set(data, { ...base, cookie });
  }

  async #destroy(sid: string): Promise<void> {
    await unlessEnded(async () => (await this.#thread(sid)).destroy());
  }

  async #thread(sid: string): Promise<Thread> {
    return this.#client.thread(await threadIdFor(sid, this.#prefix));
  }

  #lifetime({ cookie }: Values): number {
    const { originalMaxAge, expires } = (cookie ?? {}) as { originalMaxAge?: number | null; expires?: string | null };
    const ms = originalMaxAge ?? (expires ? Date.parse(expires) - Date.now() : undefined);
    if (ms === undefined || Number.isNaN(ms)) return this.#ttlSeconds;
    return Math.min(MAX_TTL_SECONDS, Math.max(MIN_TTL_SECONDS, Math.ceil(ms / 1_000)));
  }

  #callbackify<T>(result: Promise<T>, callback: Callback<T>): void {
    result.then(
      // uses a microtask, so that an error in the callback does not reject this promise
      (value) => queueMicrotask(() => callback?.(null, value)),
      (error: unknown) => {
        if (callback) queueMicrotask(() => callback(error));
        else if (this.listenerCount("error")) this.emit("error", error);
      },
    );
  }
}

/** Returns whether a session's cookie has expired. The thread may expire later. */
function hasExpired({ cookie }: SessionData): boolean {
  const expires = cookie?.expires;
  return Boolean(expires) && new Date(expires!).getTime() <= Date.now();
}

/** Performs a write, and ignores the error if the session has ended. */
async function unlessEnded(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ThreadDestroyedError || error instanceof VersionMismatchError)) throw error;
  }
}
