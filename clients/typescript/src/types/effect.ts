import type { NOT_DONE } from "../thread/not-done.js";
import type { CallOptions } from "./options.js";

/** `in_doubt`: the turn that began the last attempt has ended without an outcome, so the tool may have run. */
export type EffectState = "running" | "in_doubt" | "done" | "failed";

/** The run of one tool call, as recorded by the thread. */
export interface Effect {
  id: string;
  state: EffectState;
  tool: string;
  /** Hash of the arguments. */
  hash: string;
  /** Number of the last attempt, starting at 1. */
  attempt: number;
  /** Key for the system that the tool calls. All attempts have the same key. */
  idempotencyKey: string;
  /** Number of the turn that began the last attempt. */
  turn: number;
  /** Time at which the last attempt began, in RFC 3339 format. */
  begunAt: string;
  /** Present if the state is `done`, except in lists. */
  result?: any;
  /** Present if the state is `failed`, except in lists. */
  error?: any;
}

/** An attempt that the server granted. */
export interface EffectAttempt {
  readonly id: string;
  /** Key to pass to the system that the tool calls. All attempts have the same key. */
  readonly key: string;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
  /** For a `settle` in a merge. */
  readonly fence: string;
}

export interface EffectOptions<T> extends CallOptions {
  /**
   * Called if the tool may have run. Looks up `key` in the system that the tool calls. Returns the result of the tool,
   * or `NOT_DONE` if the tool did not run and may run now.
   */
  check?: ((key: string) => T | typeof NOT_DONE | Promise<T | typeof NOT_DONE>) | undefined;
  /** If true, the tool runs again with the same key if it may have run. */
  idempotent?: boolean | undefined;
  /** If true, the tool runs again after a recorded failure. */
  retry?: boolean | undefined;
}

/** The tool calls that a thread has recorded. */
export interface Effects {
  get(id: string, o?: CallOptions): Promise<Effect>;
  /** Iterates over all effects without results, newest first, page by page. */
  list(o?: CallOptions & { state?: EffectState | undefined }): AsyncIterableIterator<Effect>;
}
