/// <reference lib="esnext.disposable" preserve="true" />
import type { EffectAttempt, EffectOptions } from "./effect.js";
import type { AnyState } from "./state.js";
import type { CallOptions } from "./options.js";
import type { Thread } from "./thread.js";

export interface TurnOptions extends CallOptions {
  /** TTL of the lease. The client renews the lease until you release the turn. Default: 30. */
  ttlSeconds?: number | undefined;
  /** How long to wait while another caller holds the turn. Default: 0. */
  waitSeconds?: number | undefined;
  /** If true, the server rejects writes by other callers while you hold the turn. */
  exclusive?: boolean | undefined;
  idempotencyKey?: string | undefined;
}

/** Whether a caller holds the turn. */
export interface TurnState {
  held: boolean;
  /** Number of the last turn. 0 if the thread never had a turn. */
  number: number;
  expiresAt?: string;
  exclusive?: boolean;
}

/** A lease on a thread. `await using` releases the turn. */
export interface Turn<S extends object = AnyState> extends AsyncDisposable {
  readonly token: string;
  /** Number of the turn in the life of the thread, starting at 1. Other systems can use it as a fencing token. */
  readonly number: number;
  /** Number of effects in doubt when the turn was granted. */
  readonly inDoubt: number;
  /** The thread. Its writes carry the token of the turn. */
  readonly thread: Thread<S>;
  /** Aborted when the turn is lost. */
  readonly signal: AbortSignal;
  /**
   * Runs a tool call once, even if processes die or repeat it, and returns its result as parsed JSON. `undefined` becomes
   * `null`. If `run` throws `EffectFailed`, records its error. If `run` throws another error, records nothing, because
   * the tool may have run.
   *
   * @throws {EffectFailed} if a failure is recorded.
   * @throws {EffectInDoubt} if the tool may have run, unless you pass `check` or `idempotent`.
   */
  effect<T>(
    id: string,
    tool: string,
    args: unknown,
    run: (effect: EffectAttempt) => T | Promise<T>,
    o?: EffectOptions<NoInfer<T>>,
  ): Promise<T>;
  release(): Promise<void>;
}
