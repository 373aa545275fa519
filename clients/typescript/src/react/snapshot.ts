import type { ThreadkeepError } from "../http/errors.js";
import type { Operation } from "../types/operation.js";
import type { Receipt } from "../types/receipt.js";

export type ThreadStatus = "loading" | "live" | "reconnecting" | "expired" | "destroyed" | "error";

/** A write abandoned because the server was unavailable. */
export interface FailedWrite {
  readonly operations: readonly Operation[];
  readonly error: ThreadkeepError;
  /**
   * Sends the write again, for the same life of the thread, or for the next life if that has expired. If an earlier attempt
   * arrived, the server does not repeat it while it remembers the key: for 60 seconds, and longer while the key is among the
   * thread's 64 newest. The write stays in `failed` until it succeeds.
   */
  retry(): Promise<Receipt>;
  /** Removes the write from `failed`. */
  discard(): void;
}

export interface ThreadSnapshot {
  state: { [key: string]: any };
  version: number;
  id: string | undefined;
  pending: number;
  status: ThreadStatus;
  error: ThreadkeepError | undefined;
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
