import type { ThreadkeepError } from "../http/errors.js";
import type { Operation } from "../types/operation.js";
import type { Receipt } from "../types/receipt.js";

export type ThreadStatus = "loading" | "live" | "reconnecting" | "expired" | "destroyed" | "error";

/** A write that was abandoned because the server was unavailable. */
export interface FailedWrite {
  readonly operations: readonly Operation[];
  readonly error: ThreadkeepError;
  /**
   * Sends the write again, with the same idempotency key. Creates the thread again if it has expired. The server does
   * not perform the write twice while it remembers the key: for at least 60 seconds, or longer while the key is among
   * the thread's 64 newest keys. The write remains in `failed` until it succeeds.
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
