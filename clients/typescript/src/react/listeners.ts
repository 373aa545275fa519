const LINGER_MS = 200;

/** Listeners of a store. The store starts with the first listener, and stops shortly after the last one is removed. */
export class Listeners {
  readonly #all = new Set<() => void>();
  readonly #start: () => void;
  readonly #stop: () => void;
  #isRunning = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(start: () => void, stop: () => void) {
    this.#start = start;
    this.#stop = stop;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  add(listener: () => void): () => void {
    this.#all.add(listener);
    clearTimeout(this.#timer);
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#start();
    }
    return () => {
      this.#all.delete(listener);
      clearTimeout(this.#timer);
      if (!this.#all.size) this.#timer = setTimeout(() => this.#end(), LINGER_MS);
    };
  }

  call(): void {
    for (const listener of this.#all) listener();
  }

  #end(): void {
    this.#isRunning = false;
    this.#stop();
  }
}
