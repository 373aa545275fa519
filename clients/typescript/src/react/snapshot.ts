import type { ThreadkeepError } from "../http/errors.js";
import type { Operation } from "../types/operation.js";
import type { Receipt } from "../types/receipt.js";

export type ThreadStatus = "loading" | "live" | "reconnecting" | "expired" | "destroyed" | "error";

/** A write that the server could not be reached for. */
export interface FailedWrite {
  readonly operations: readonly Operation[];
  readonly error: ThreadkeepError;
  /** Sends it again. The server performs it once, also if an earlier attempt arrived. */
  retry(): Promise<Receipt>;
  /** Forgets it. */
  discard(): void;
}

/** All that a component shows of a thread. */
export interface ThreadSnapshot {
  state: { [key: string]: any };
  version: number;
  id: string | undefined;
  /** The number of writes without a response. */
  pending: number;
  status: ThreadStatus;
  error: ThreadkeepError | undefined;
  /** Writes that were given up after ten seconds, the oldest first. */
  failed: readonly FailedWrite[];
}

export const loadingSnapshot = (state: object = {}): ThreadSnapshot => ({
  state,
  version: 0,
  id: undefined,
  pending: 0,
  status: "loading",
  error: undefined,
  failed: [],
});
