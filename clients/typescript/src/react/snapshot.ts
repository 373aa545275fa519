import type { ThreadkeepError } from "../http/errors.js";

export type ThreadStatus = "loading" | "live" | "reconnecting" | "destroyed" | "error";

/** All that a component shows of a thread. */
export interface ThreadSnapshot {
  state: { [key: string]: any };
  version: number;
  id: string | undefined;
  /** The number of writes without a response. */
  pending: number;
  status: ThreadStatus;
  error: ThreadkeepError | undefined;
}

export const loadingSnapshot = (state: object = {}): ThreadSnapshot => ({
  state,
  version: 0,
  id: undefined,
  pending: 0,
  status: "loading",
  error: undefined,
});
