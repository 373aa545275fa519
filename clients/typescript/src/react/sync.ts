import type { Thread } from "../types/thread.js";
import { lifeOf, type Optimistic } from "./optimistic.js";

const MAX_KEYS = 50;

export class Sync {
  readonly #changedKeys = new Map<number, readonly string[]>();
  readonly #thread: Thread;
  readonly #state: Optimistic;
  readonly #readsAll: boolean;
  #isFullReadPending = false;
  #isDirty = false;
  #running: Promise<void> | undefined;
  #epoch = 0;

  /** `readsAll` is true if there is a schema, because a schema can validate only the whole state. */
  constructor(thread: Thread, state: Optimistic, readsAll: boolean) {
    this.#thread = thread;
    this.#state = state;
    this.#readsAll = readsAll;
  }

  /** Reads the keys that an event names. Reads the whole state if the event is about a new thread with the same ID. */
  handleChange({ version, keys, life }: { version: number; keys: readonly string[]; life: string }): Promise<void> {
    const { base } = this.#state;
    if (base.version && life !== base.life) return this.readAll();
    this.#changedKeys.set(version, keys);
    return this.#run();
  }

  /** Reads the whole state with a new request, even if another read is in progress. */
  readAll(): Promise<void> {
    this.#isFullReadPending = true;
    return this.#run();
  }

  /** Resumes reads that were waiting for the response to a write. */
  resume(): Promise<void> {
    return this.#changedKeys.size || this.#isFullReadPending ? this.#run() : Promise.resolve();
  }

  reset(): void {
    this.#epoch++;
    this.#changedKeys.clear();
  }

  #run(): Promise<void> {
    this.#isDirty = true;
    return (this.#running ??= this.#loop().finally(() => (this.#running = undefined)));
  }

  async #loop(): Promise<void> {
    await undefined; // collects events that arrive together
    while (this.#isDirty) {
      this.#isDirty = false;
      await this.#once();
    }
  }

  async #once(): Promise<void> {
    const { base } = this.#state;
    for (const version of this.#changedKeys.keys()) if (version <= base.version) this.#changedKeys.delete(version);
    if (!this.#isFullReadPending && !this.#changedKeys.size) return;
    const keys = new Set<string>();
    let last = base.version;
    for (let changed; (changed = this.#changedKeys.get(last + 1)); last++) changed.forEach((key) => keys.add(key));
    const isGap = this.#changedKeys.size > last - base.version;
    if (this.#isFullReadPending || this.#readsAll || isGap || keys.size > MAX_KEYS) return this.#readState();
    if (this.#state.isSending(keys)) return; // resumed by `resume`
    const epoch = this.#epoch;
    const { state, version, etag } = await this.#thread.read({ keys: [...keys] });
    if (epoch !== this.#epoch) return;
    if (version !== last || lifeOf(etag) !== base.life) {
      // the thread has changed again
      this.#isFullReadPending = this.#isDirty = true;
      return;
    }
    const next = { ...this.#state.base.state };
    for (const key of keys) {
      if (Object.hasOwn(state, key)) Object.defineProperty(next, key, { value: state[key], writable: true, enumerable: true, configurable: true });
      else delete next[key];
    }
    this.#state.adopt({ state: next, version, life: base.life }, keys);
  }

  async #readState(): Promise<void> {
    this.#isFullReadPending = false;
    const epoch = this.#epoch;
    const before = this.#state.base;
    const { state, version, etag } = await this.#thread.read().catch((error) => {
      this.#isFullReadPending = true;
      throw error;
    });
    if (epoch !== this.#epoch) return;
    const life = lifeOf(etag);
    const current = this.#state.base;
    // if a write created a new thread with this ID during the read, the result may belong to the previous thread
    const isStale = before !== current && (!version || (life !== current.life && before.life !== current.life));
    if (isStale) this.#isFullReadPending = this.#isDirty = true;
    else this.#state.adopt({ state, version, life });
  }
}
