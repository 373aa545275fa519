import { orAbort } from "../http/wait.js";

const open = () => {};

/** Admits one request at a time until an ID is known. */
export class Gate {
  #last: Promise<void> | undefined;

  /** Resolves when the caller may continue. Call the result to admit the next request. */
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
