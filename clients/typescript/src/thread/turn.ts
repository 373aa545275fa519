import { ConflictError, ThreadDestroyedError, ThreadkeepError } from "../http/errors.js";
import { sleep } from "../http/wait.js";
import type { CallOptions } from "../types/options.js";
import type { Thread } from "../types/thread.js";
import type { Turn, TurnOptions } from "../types/turn.js";
import type { Calls } from "./calls.js";

const DEFAULT_TTL_SECONDS = 30;
const dispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Takes the turn, a lease on the thread, and renews it until release. `threadOf` makes a thread that uses `token`. */
export async function takeTurn<S extends object>(
  calls: Calls,
  { ttlSeconds = DEFAULT_TTL_SECONDS, waitSeconds, exclusive, ...o }: TurnOptions,
  threadOf: (token: string) => Thread<S>,
): Promise<Turn<S>> {
  const lease = { ttl_seconds: ttlSeconds, wait_seconds: waitSeconds, exclusive };
  const request = {
    ...calls.writeRequest("POST", "/turn", { body: JSON.stringify(lease) }, o),
    extraMs: (waitSeconds ?? 0) * 1_000,
  };
  await calls.queue.idle(o.signal);
  const { body } = await calls.transport.json<{ token: string }>(request);
  return new HeldTurn(calls, body.token, ttlSeconds, threadOf(body.token));
}

class HeldTurn<S extends object> implements Turn<S> {
  readonly token: string;
  readonly thread: Thread<S>;
  readonly #calls: Calls;
  readonly #ttlSeconds: number;
  readonly #lost = new AbortController();
  readonly #released = new AbortController();

  constructor(calls: Calls, token: string, ttlSeconds: number, thread: Thread<S>) {
    this.#calls = calls;
    this.token = token;
    this.#ttlSeconds = ttlSeconds;
    this.thread = thread;
    void this.#renew();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  async release(): Promise<void> {
    this.#released.abort();
    try {
      await this.#send("DELETE", {});
    } catch (error) {
      // ignored, because the turn may already be lost
      if (!(error instanceof ConflictError || error instanceof ThreadDestroyedError)) throw error;
    }
  }

  [dispose](): Promise<void> {
    return this.release();
  }

  async #renew(): Promise<void> {
    const ms = this.#ttlSeconds * 1_000;
    const released = this.#released.signal;
    let expiresAt = Date.now() + ms;
    while (!released.aborted) {
      await sleep(ms / 3, released).catch(() => {});
      if (released.aborted) return;
      const sentAt = Date.now();
      try {
        const signal = AbortSignal.timeout(Math.max(0, expiresAt - sentAt));
        await this.#send("PATCH", { signal }, JSON.stringify({ ttl_seconds: this.#ttlSeconds }));
        expiresAt = sentAt + ms;
      } catch (error) {
        if (released.aborted) return; // `release` was faster than the renewal
        // if the server is unreachable, retries until the lease expires, because the lease remains valid until then
        if (isRejected(error) || Date.now() >= expiresAt) return this.#lost.abort(error);
      }
    }
  }

  async #send(method: string, o: CallOptions, body?: string): Promise<void> {
    const part = { body, headers: { "x-turn-token": this.token } };
    await this.#calls.transport.json(this.#calls.request(method, "/turn", part, o));
  }
}

const isRejected = (error: unknown): boolean =>
  error instanceof ThreadkeepError && [400, 401, 403, 404, 409, 410].includes(error.status ?? 0);
