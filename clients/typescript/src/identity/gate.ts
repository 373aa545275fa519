import { orAbort } from "../http/wait.js";

const open = () => {};

/** Admits one request at a time while the thread ID is unknown. */
export class Gate {
  #last: Promise<void> | undefined;

  /** Waits until the caller may send a request. Returns a function that admits the next request. */
  async enter(isKnown: () => boolean, signal: AbortSignal | undefined): Promise<() => void> {
    while (!isKnown()) {
      const last = this.#last;
      if (!last) {
        let leave!: () => void;
        this.#last = new Promise((resolve) => {
          leave = () => {
            this.#last = undefined;
            resolve();
          };
        });
        return leave;
      }
      await orAbort(last, signal);
    }
    return open;
  }
}
