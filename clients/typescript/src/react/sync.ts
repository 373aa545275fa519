import type { Thread } from "../types/thread.js";
import { lifeOf, type Optimistic } from "./optimistic.js";

const MAX_KEYS = 50;

export class Sync {
  readonly #news = new Map<number, readonly string[]>();
  readonly #thread: Thread;
  readonly #state: Optimistic;
  readonly #needsWhole: boolean;
  #wantsWhole = false;
  #again = false;
  #running: Promise<void> | undefined;
  #epoch = 0;

  /** `needsWhole` is true if there is a schema, because a schema can validate only the whole state. */
  constructor(thread: Thread, state: Optimistic, needsWhole: boolean) {
    this.#thread = thread;
    this.#state = state;
    this.#needsWhole = needsWhole;
  }

  /** Reads the keys that an event names. Reads the whole state if the event's life differs from that of the base. */
  changed({ version, keys, life }: { version: number; keys: readonly string[]; life: string }): Promise<void> {
    const { base } = this.#state;
    if (base.version && life !== base.life) return this.whole();
    this.#news.set(version, keys);
    return this.#run();
  }

  /** Reads the whole state in a request that begins after this call. */
  whole(): Promise<void> {
    this.#wantsWhole = true;
    return this.#run();
  }

  /** Resumes reads that were waiting for the response to a write. */
  settled(): Promise<void> {
    return this.#news.size || this.#wantsWhole ? this.#run() : Promise.resolve();
  }

  reset(): void {
    this.#epoch++;
    this.#news.clear();
  }

  #run(): Promise<void> {
    this.#again = true;
    return (this.#running ??= this.#loop().finally(() => (this.#running = undefined)));
  }

  async #loop(): Promise<void> {
    await undefined; // collects events that arrive together
    while (this.#again) {
      this.#again = false;
      await this.#once();
    }
  }

  async #once(): Promise<void> {
    const { base } = this.#state;
    for (const version of this.#news.keys()) if (version <= base.version) this.#news.delete(version);
    if (!this.#wantsWhole && !this.#news.size) return;
    const keys = new Set<string>();
    let last = base.version;
    for (let news; (news = this.#news.get(last + 1)); last++) news.forEach((key) => keys.add(key));
    const isGap = this.#news.size > last - base.version;
    if (this.#wantsWhole || this.#needsWhole || isGap || keys.size > MAX_KEYS) return this.#readWhole();
    if (this.#state.isSending(keys)) return; // resumed by `settled`
    const epoch = this.#epoch;
    const { state, version, etag } = await this.#thread.read({ keys: [...keys] });
    if (epoch !== this.#epoch) return;
    if (version !== last || lifeOf(etag) !== base.life) {
      // the thread has changed again
      this.#wantsWhole = this.#again = true;
      return;
    }
    const next = { ...this.#state.base.state };
    for (const key of keys) {
      if (Object.hasOwn(state, key)) Object.defineProperty(next, key, { value: state[key], writable: true, enumerable: true, configurable: true });
      else delete next[key];
    }
    this.#state.adopt({ state: next, version, life: base.life }, keys);
  }

  async #readWhole(): Promise<void> {
    this.#wantsWhole = false;
    const epoch = this.#epoch;
    const before = this.#state.base;
    const { state, version, etag } = await this.#thread.read().catch((error) => {
      this.#wantsWhole = true;
      throw error;
    });
    if (epoch !== this.#epoch) return;
    const life = lifeOf(etag);
    const now = this.#state.base;
    // in the meantime, a write may have created a new thread with this ID
    const isStale = before !== now && (!version || (life !== now.life && before.life !== now.life));
    if (isStale) this.#wantsWhole = this.#again = true;
    else this.#state.adopt({ state, version, life });
  }
}
