/// <reference lib="esnext.disposable" preserve="true" />
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
  expiresAt?: string;
  exclusive?: boolean;
}

/** A lease on a thread. `await using` releases the turn. */
export interface Turn<S extends object = AnyState> extends AsyncDisposable {
  readonly token: string;
  /** The thread. Its writes carry the token of the turn. */
  readonly thread: Thread<S>;
  /** Aborted when the turn is lost. */
  readonly signal: AbortSignal;
  release(): Promise<void>;
}
