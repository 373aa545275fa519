import { orAbort } from "../http/wait.js";

const open = () => {};

/** Lets one request through at a time, until an ID is known. */
export class Gate {
  #last: Promise<void> | undefined;

  /** Resolves when the caller may go on, to a function that lets the next one through. */
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
