import type { Operation } from "../types/operation.js";
import type { Receipt } from "../types/receipt.js";
import { apply } from "./apply.js";

type State = { [key: string]: any };

export interface Base {
  state: State;
  version: number;
  life: string;
}

/** A write by this page that is not yet part of the base. The base is the last state that was read. */
interface Write {
  readonly operations: readonly Operation[];
  confirmed?: { version: number; life: string };
}

/** Returns the part of an ETag that distinguishes threads with the same ID, or "unknown" if that part is missing. */
export const lifeOf = (etag: string): string => /-([0-9a-f]{16})"$/.exec(etag)?.[1] ?? "unknown";

const FRESH: Base = { state: {}, version: 0, life: "fresh" };

export class Optimistic {
  #base: Base;
  #writes: Write[] = [];
  #sent: Write | undefined;
  #held: { next: Base; replaces: Base } | undefined;
  #cachedState: State | undefined;
  #isExpired = false;

  constructor(initial: State = {}) {
    this.#base = { state: initial, version: 0, life: "" };
  }

  get isKnown(): boolean {
    return this.#base.life !== "";
  }

  /** True if the thread has expired. Its last state remains visible until a new thread with the same ID is known. */
  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** Life of the thread that the page shows, if known. Each new thread with the same ID has a new life. */
  get life(): string | undefined {
    const { version, life } = this.#base;
    return version && !this.#isExpired && life !== "unknown" ? life : undefined;
  }

  expire(): void {
    this.#isExpired = true;
  }

  get base(): Base {
    return this.#base;
  }

  /** The base with all pending writes applied. Returns the same object until a value changes. */
  get state(): State {
    return (this.#cachedState ??= this.#writes.flatMap((write) => write.operations).reduce(apply, this.#base.state));
  }

  get pending(): number {
    return this.#writes.filter((write) => !write.confirmed).length;
  }

  add(operations: readonly Operation[]): Write {
    const write = { operations };
    const next = operations.reduce(apply, this.state);
    this.#writes.push(write);
    this.#cachedState = next;
    return write;
  }

  send(write: Write): void {
    this.#sent = write;
  }

  /** Records that the server performed `write`. Returns whether the base now contains the write. */
  confirm(write: Write, { version, etag }: Receipt, value?: number | bigint): boolean {
    const life = lifeOf(etag);
    const base = this.#base;
    write.confirmed = { version, life };
    this.#sent = undefined;
    const isNext = version === base.version + 1 && (life === base.life || !base.version);
    if (isNext && this.isKnown && this.#writes.includes(write)) {
      const state = write.operations.reduce(apply, base.state);
      const [first] = write.operations;
      const isExact = value === undefined || (first?.op === "increment" && state[first.key] === value);
      // the result shows that no other write happened in the meantime
      if (isExact) this.#replace({ state, version, life });
    }
    this.#release();
    return write.confirmed.life === this.#base.life && version <= this.#base.version;
  }

  reject(write: Write): void {
    this.#writes = this.#writes.filter((one) => one !== write);
    this.#cachedState = undefined;
    this.#sent = undefined;
    this.#release();
  }

  /**
   * Makes `next` the new base. `keys` are the keys that differ from the old base, if known. If `next` may contain the
   * write in flight, holds `next` back until the response to that write has arrived.
   */
  adopt(next: Base, keys?: ReadonlySet<string>): void {
    const base = this.#base;
    if (!next.version && base.version) return this.expire();
    const isNewer = next.version > base.version || (this.#isExpired && next.version);
    if (next.life === base.life && !isNewer) return;
    if (this.isSending(keys)) this.#held = { next, replaces: base };
    else this.#replace(next);
  }

  isSending(keys: ReadonlySet<string> | undefined): boolean {
    return this.#sent !== undefined && mayTouch(this.#sent.operations, keys);
  }

  /** Discards everything except unsent writes. */
  reset(): void {
    this.#writes = this.#writes.filter((write) => !write.confirmed && write !== this.#sent);
    this.#held = undefined;
    this.#isExpired = false;
    this.#base = FRESH;
    this.#cachedState = undefined;
  }

  #release(): void {
    const { next, replaces } = this.#held ?? {};
    this.#held = undefined;
    // if the write created a new thread with this ID, drops the held state, which belongs to the previous thread
    if (next && (next.life === this.#base.life || replaces === this.#base)) this.adopt(next);
  }

  #replace(next: Base): void {
    this.#isExpired = false;
    this.#base = next;
    // drops writes to a previous thread with this ID
    this.#writes = this.#writes.filter(({ confirmed }) => confirmed && confirmed.life === next.life ? confirmed.version > next.version : !confirmed);
    this.#cachedState = undefined;
  }
}

function mayTouch(operations: readonly Operation[], keys: ReadonlySet<string> | undefined): boolean {
  return !keys || operations.some((operation) => ("key" in operation ? keys.has(operation.key) : operation.op === "clear"));
}
