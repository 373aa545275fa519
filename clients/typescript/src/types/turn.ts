/// <reference lib="esnext.disposable" preserve="true" />
import type { AnyState } from "./state.js";
import type { CallOptions } from "./options.js";
import type { Thread } from "./thread.js";

export interface TurnOptions extends CallOptions {
  /** TTL of the lease, which is renewed while it is held. Default: 30. */
  ttlSeconds?: number | undefined;
  /** How long to wait for a turn that another caller holds. Default: 0. */
  waitSeconds?: number | undefined;
  /** Whether to reject writes of other callers while the turn is held. */
  exclusive?: boolean | undefined;
  idempotencyKey?: string | undefined;
}

/** Whether a caller holds the turn. */
export interface TurnState {
  held: boolean;
  expiresAt?: string;
  exclusive?: boolean;
}

/** A lease on a thread. `await using` releases it. */
export interface Turn<S extends object = AnyState> extends AsyncDisposable {
  readonly token: string;
  /** Writes with the token of this turn. */
  readonly thread: Thread<S>;
  /** Aborted when the turn is lost. */
  readonly signal: AbortSignal;
  release(): Promise<void>;
}
