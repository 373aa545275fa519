/** Runs up to `max` tasks at a time, in call order. */
export class Gate {
  #running = 0;
  readonly #waiting = new Set<() => void>();

  constructor(private readonly max: number) {}

  /** Rejects without running the task if `signal` is aborted before the task starts. */
  async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#running < this.max) this.#running++;
    else await this.#waitForSlot(signal);
    try {
      return await task();
    } finally {
      this.#release();
    }
  }

  #waitForSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        leaveQueue();
        resolve();
      };
      const giveUp = () => {
        leaveQueue();
        reject(signal.reason as Error);
      };
      const leaveQueue = () => {
        this.#waiting.delete(enter);
        signal.removeEventListener("abort", giveUp);
      };
      this.#waiting.add(enter);
      signal.addEventListener("abort", giveUp);
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#running--;
  }
}
