import { ownError, type ThreadkeepError } from "../http/errors.js";
import type { Client } from "../types/client.js";
import type { ThreadInfo } from "../types/receipt.js";
import { Listeners } from "./listeners.js";
import { onWrite } from "./writes.js";

const REFRESH_DELAY_MS = 200;

export interface ListSnapshot {
  threads: ThreadInfo[];
  status: "loading" | "ready" | "error";
  error: ThreadkeepError | undefined;
  /** Whether `loadMore` would add threads. */
  hasMore: boolean;
}

export const LOADING: ListSnapshot = { threads: [], status: "loading", error: undefined, hasMore: false };

export interface Listing {
  owner?: string | undefined;
  limit?: number | undefined;
  order?: "updated" | "created" | undefined;
}

export class ListStore {
  readonly #client: Client;
  readonly #listing: Listing;
  readonly #listeners: Listeners;
  #snapshot = LOADING;
  #pages = 1;
  #reading: Promise<void> | undefined;
  #isStale = false;
  #controller = new AbortController();

  constructor(client: Client, listing: Listing) {
    this.#client = client;
    this.#listing = listing;
    this.#listeners = new Listeners(
      () => this.#start(),
      () => this.#controller.abort(),
    );
  }

  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.add(listener);

  readonly getSnapshot = (): ListSnapshot => this.#snapshot;

  readonly refresh = (): Promise<void> => {
    this.#isStale = true;
    return (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)));
  };

  readonly loadMore = async (): Promise<void> => {
    if (!this.#snapshot.hasMore) return;
    this.#pages++;
    await this.refresh();
  };

  #start(): void {
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    const refresh = () => void this.refresh();
    const onVisible = () => document.visibilityState === "visible" && refresh();
    document.addEventListener("visibilitychange", onVisible, { signal });
    let timer: ReturnType<typeof setTimeout>;
    const unsubscribe = onWrite(this.#client, () => {
      clearTimeout(timer);
      timer = setTimeout(refresh, REFRESH_DELAY_MS);
    });
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      unsubscribe();
    });
    refresh();
  }

  async #read(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        await this.#readPages();
      } catch (error) {
        this.#publish({ ...this.#snapshot, status: "error", error: ownError(error) });
      }
    }
  }

  async #readPages(): Promise<void> {
    const found = new Map<string, ThreadInfo>();
    let cursor: string | undefined;
    for (let page = 0; page < this.#pages && (page === 0 || cursor); page++) {
      const { threads, next } = await this.#client.threads.list({ ...this.#listing, cursor });
      for (const thread of threads) if (!found.has(thread.id)) found.set(thread.id, thread);
      cursor = next;
    }
    this.#publish({ threads: [...found.values()], status: "ready", error: undefined, hasMore: cursor !== undefined });
  }

  #publish(next: ListSnapshot): void {
    if (!this.#listeners.isRunning) return;
    this.#snapshot = next;
    this.#listeners.call();
  }
}
