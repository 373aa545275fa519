import { signal } from "@preact/signals";
import { type Problem, asProblem } from "../../api/problem.js";
import { call } from "../../api/request.js";
import { type StreamEvent, listen } from "../../api/stream.js";
import { threadOf } from "../../api/threads.js";
import type { Thread } from "../../api/types.js";
import { member, membersOf } from "../../json/text.js";

export const SHOWN_MS = 4_000;
const BATCH_MS = 250;
/** Maximum number of keys in a request. If more keys have changed, the whole state is read. */
const KEYS_MAX = 20;

export type Phase = "loading" | "live" | "absent" | "ended" | "moved" | "failed";

export interface Change {
  at: number;
  before: string | undefined;
}

interface EventData {
  life: string;
  version: number;
  keys?: string[] | null;
  metadata_changed?: boolean;
  reason?: string;
  new_thread_id?: string;
}

interface Update {
  data: EventData;
  values: Map<string, string> | undefined;
}

/**
 * A live thread. Reads the state once, and then applies the thread's events. Requests events that contain the new
 * values, because reading the state again would extend the thread's lifetime.
 */
export class ThreadView {
  readonly phase = signal<Phase>("loading");
  readonly thread = signal<Thread | undefined>(undefined);
  readonly state = signal<ReadonlyMap<string, string>>(new Map());
  readonly changes = signal<ReadonlyMap<string, Change>>(new Map());
  readonly problem = signal<Problem | undefined>(undefined);
  readonly isListening = signal(false);
  readonly historyChanges = signal(0);
  readonly reason = signal("");
  readonly movedTo = signal("");

  #version = 0;
  /** Identifies this thread among all threads that had its ID. */
  #life = "";
  #updates: Update[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  #controller = new AbortController();
  #stop: () => void;
  #hasLoaded = false;
  /** Number of times the whole thread has been read. Only the results of the newest read are used. */
  #readings = 0;

  constructor(readonly id: string) {
    this.#stop = listen(`/v1/threads/${id}/events`, { values: true }, {
      onEvent: (event) => this.#handleEvent(event),
      onState: (state) => {
        this.isListening.value = state === "open";
        if (state === "open" && !this.#hasLoaded) void this.load();
      },
      onProblem: (problem) => {
        this.problem.value = problem;
        if (this.phase.value === "loading") this.phase.value = "failed";
      },
    });
  }

  close(): void {
    this.#stop();
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  get version(): number {
    return this.#version;
  }

  async load(): Promise<void> {
    this.#hasLoaded = true;
    const reading = ++this.#readings;
    const { signal } = this.#controller;
    try {
      const state = await call(`/v1/threads/${this.id}/state`, { signal });
      // reads the expiry after the state, because reading the state extends the thread's lifetime
      const thread = await this.#peek();
      if (reading !== this.#readings) return;
      const [, version = "0", life = ""] = /^"(\d+)-([0-9a-f]+)"$/.exec(state.headers.get("etag") ?? "") ?? [];
      this.#version = Number(version);
      this.#life = life;
      const next = membersOf(state.text);
      if (this.phase.value === "live") this.#highlight(this.state.value, next);
      this.state.value = next;
      this.thread.value = thread;
      this.problem.value = undefined;
      if (this.phase.value !== "ended" || this.#version > 0) this.phase.value = this.#version > 0 ? "live" : "absent";
      this.historyChanges.value++;
    } catch (error) {
      if (signal.aborted || reading !== this.#readings) return;
      this.problem.value = asProblem(error);
      if (this.phase.value === "loading") this.phase.value = "failed";
    }
  }

  /** Reads the thread without its state, and without extending its lifetime. With `isQuiet`, ignores failures. */
  async refresh({ isQuiet = false } = {}): Promise<void> {
    try {
      const thread = await this.#peek();
      // for an ended thread, shows the last figures until the stream reports the end
      if (thread.exists) this.thread.value = thread;
    } catch (error) {
      if (!isQuiet && !this.#controller.signal.aborted) this.problem.value = asProblem(error);
    }
  }

  async #peek(): Promise<Thread> {
    const { signal } = this.#controller;
    return threadOf((await call(`/v1/threads/${this.id}`, { query: { peek: true }, signal })).text);
  }

  #handleEvent({ type, data: text }: StreamEvent): void {
    if (type === "reset") return void this.load();
    const root = { start: 0, end: text.length };
    const span = member(text, root, "data");
    if (!span) return;
    const raw = text.slice(span.start, span.end);
    if (type === "thread.updated" || type === "thread.created") {
      const values = member(text, span, "values");
      const { values: _, ...data } = JSON.parse(raw) as EventData & { values: unknown };
      this.#updates.push({ data, values: values && membersOf(text.slice(values.start, values.end)) });
      this.#timer ??= setTimeout(() => void this.#apply(), BATCH_MS);
    } else if (type === "history.appended") {
      this.historyChanges.value++;
    } else if (type === "thread.destroyed") {
      const { life, reason } = JSON.parse(raw) as EventData;
      if (this.#life && life !== this.#life) return;
      this.reason.value = reason ?? "destroyed";
      this.phase.value = "ended";
      this.#updates = [];
    } else if (type === "thread.rotated") {
      this.movedTo.value = (JSON.parse(raw) as EventData).new_thread_id ?? "";
      this.phase.value = "moved";
      this.#stop();
      this.isListening.value = false;
    }
  }

  async #apply(): Promise<void> {
    this.#timer = undefined;
    if (this.#isBusy || this.phase.value === "loading") {
      this.#timer = setTimeout(() => void this.#apply(), BATCH_MS);
      return;
    }
    const updates = this.#updates.splice(0).filter(({ data }) => data.life !== this.#life || data.version > this.#version);
    if (updates.length === 0) return;
    this.#isBusy = true;
    const readings = this.#readings;
    try {
      const isGapless = updates.every(({ data }, i) => data.life === this.#life && data.version === this.#version + 1 + i && data.keys);
      if (!isGapless) return await this.load();
      const next = new Map(this.state.value);
      const unknown = new Set<string>();
      for (const { data, values } of updates) {
        for (const key of data.keys!) {
          const value = values?.get(key);
          if (!values) unknown.add(key);
          else unknown.delete(key);
          if (value !== undefined) next.set(key, value);
          else next.delete(key);
        }
      }
      if (unknown.size > KEYS_MAX) return await this.load();
      const { signal } = this.#controller;
      if (unknown.size > 0) {
        // the values may include later changes; applying the events for those changes then has no effect
        const query = { key: [...unknown] };
        const { text } = await call(`/v1/threads/${this.id}/state`, { query, signal });
        // drops the values, because a newer read of the whole thread includes them
        if (readings !== this.#readings) return;
        const read = membersOf(text);
        for (const key of unknown) {
          const value = read.get(key);
          if (value !== undefined) next.set(key, value);
          else next.delete(key);
        }
      }
      this.#version = updates.at(-1)!.data.version;
      this.#highlight(this.state.value, next);
      this.state.value = new Map([...next].sort(([a], [b]) => (a < b ? -1 : 1)));
      this.phase.value = "live";
      await this.refresh();
    } catch (error) {
      if (!this.#controller.signal.aborted) {
        this.problem.value = asProblem(error);
        this.#hasLoaded = false;
      }
    } finally {
      this.#isBusy = false;
    }
  }

  #highlight(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): void {
    const at = Date.now();
    const changes = new Map([...this.changes.value].filter(([, change]) => at - change.at < SHOWN_MS));
    for (const [key, value] of after) if (before.get(key) !== value) changes.set(key, { at, before: before.get(key) });
    this.changes.value = changes;
  }
}
