import { ConflictError, ThreadDestroyedError, ThreadkeepError } from "../http/errors.js";
import { sleep } from "../http/wait.js";
import type { CallOptions } from "../types/options.js";
import type { Thread } from "../types/thread.js";
import type { Turn, TurnOptions } from "../types/turn.js";
import { type Calls, callsOf } from "./calls.js";
import { effectRunner } from "./run-effect.js";

const DEFAULT_TTL_SECONDS = 30;
const dispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

interface Grant {
  token: string;
  number: number;
  in_doubt: number;
}

/** Takes the turn, a lease on the thread, and renews it until release. `threadOf` makes a thread that uses `token`. */
export async function takeTurn<S extends object>(
  calls: Calls,
  { ttlSeconds = DEFAULT_TTL_SECONDS, waitSeconds, exclusive, ...o }: TurnOptions,
  threadOf: (token: string) => Thread<S>,
): Promise<Turn<S>> {
  const { transport } = calls;
  const lease = { ttl_seconds: ttlSeconds, wait_seconds: waitSeconds, exclusive };
  const request = {
    ...calls.writeRequest("POST", "/turn", { body: JSON.stringify(lease) }, o),
    extraMs: (waitSeconds ?? 0) * 1_000,
  };
  await calls.queue.idle(o.signal);
  const { token, number, in_doubt: inDoubt } = (await transport.json<Grant>(request)).body;
  const { signal, release } = hold(calls, token, ttlSeconds);
  const effect = effectRunner(callsOf(transport, token), signal);
  return { token, number, inDoubt, thread: threadOf(token), signal, effect, release, [dispose]: release };
}

/** Renews the turn until it is released or lost. */
function hold(calls: Calls, token: string, ttlSeconds: number): Pick<Turn, "signal" | "release"> {
  const lost = new AbortController();
  const releasing = new AbortController();
  const released = releasing.signal;
  const ms = ttlSeconds * 1_000;

  const send = async (method: string, o: CallOptions, body?: string) => {
    await calls.transport.json(calls.request(method, "/turn", { body, headers: { "x-turn-token": token } }, o));
  };

  const renew = async () => {
    let expiresAt = Date.now() + ms;
    while (!released.aborted) {
      await sleep(ms / 3, released).catch(() => {});
      if (released.aborted) return;
      const sentAt = Date.now();
      try {
        const signal = AbortSignal.timeout(Math.max(0, expiresAt - sentAt));
        await send("PATCH", { signal }, JSON.stringify({ ttl_seconds: ttlSeconds }));
        expiresAt = sentAt + ms;
      } catch (error) {
        if (released.aborted) return; // `release` was faster than the renewal
        // if the server is unreachable, retries until the lease expires, because the lease remains valid until then
        if (isRejected(error) || Date.now() >= expiresAt) return lost.abort(error);
      }
    }
  };

  const release = async () => {
    releasing.abort();
    try {
      await send("DELETE", {});
    } catch (error) {
      // ignored, because the turn may already be lost
      if (!(error instanceof ConflictError || error instanceof ThreadDestroyedError)) throw error;
    }
  };

  void renew();
  return { signal: lost.signal, release };
}

const isRejected = (error: unknown): boolean =>
  error instanceof ThreadkeepError && [400, 401, 403, 404, 409, 410].includes(error.status ?? 0);
