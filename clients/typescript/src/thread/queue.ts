import { orAbort } from "../http/wait.js";

/** Runs tasks one at a time, in order. A failure does not stop later tasks. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const turn = this.#last.then(() => {
      signal?.throwIfAborted();
      return task();
    });
    this.#last = turn.catch(() => {});
    return orAbort(turn, signal);
  }

  async idle(signal?: AbortSignal): Promise<void> {
    await orAbort(this.#last, signal);
  }
}
