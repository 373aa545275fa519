import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { NO_ID, type Problem, asProblem } from "../../api/problem.js";
import { recoveries } from "../../api/request.js";
import { type ThreadFilter, listThreads } from "../../api/threads.js";
import type { Thread } from "../../api/types.js";
import { count } from "../../format.js";
import { hrefOfThread, isThreadId } from "../../ids.js";
import { go } from "../../route.js";
import { latest } from "../../stats/collector.js";
import { Empty, Failure } from "../../ui/notices.js";
import { VirtualList } from "../../ui/virtual-list.js";
import { ThreadRow } from "./row.js";
import { forgetPreviews } from "./previews.js";

/** Number of threads to read per step. Large, because a list without an owner is sorted only when it is complete. */
const STEP_THREADS = 1_000;
/** Maximum number of pages to read per step. Needed because a filtered page may be empty even if more pages follow. */
const PAGES_MAX = 50;
/** Maximum number of threads that the service examines for a filtered page. */
const EXAMINED_MAX = 1_000;

// The filter and the list are global, so that the same list is shown when the user returns to this page.
const filter = signal<ThreadFilter>({ owner: "", order: "updated", metadata: undefined });
const threads = signal<Thread[]>([]);
const cursor = signal<string | null | undefined>(undefined);
const isBusy = signal(false);
const pagesRead = signal(0);
const refreshes = signal(0);
const problem = signal<Problem | undefined>(undefined);
let controller = new AbortController();

const isComplete = computed(() => cursor.value === null);

async function readMore(isStart: boolean): Promise<void> {
  if (isStart) {
    controller.abort();
    controller = new AbortController();
    threads.value = [];
    cursor.value = undefined;
    pagesRead.value = 0;
    refreshes.value++;
  } else if (isBusy.value || isComplete.value) return;
  const { signal } = controller;
  isBusy.value = true;
  problem.value = undefined;
  const target = isStart && filter.value.owner ? 100 : threads.value.length + STEP_THREADS;
  try {
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const page = await listThreads(filter.value, cursor.value ?? null, signal);
      if (signal.aborted) return;
      cursor.value = page.next;
      pagesRead.value++;
      const all = threads.value.concat(page.items);
      threads.value = page.next === null && !filter.value.owner ? newestFirst(all) : all;
      if (page.next === null || all.length >= target) break;
    }
  } catch (error) {
    if (!signal.aborted) problem.value = asProblem(error);
  }
  if (!signal.aborted) isBusy.value = false;
}

const newestFirst = (all: Thread[]) => {
  const time = ({ updated_at }: Thread) => updated_at ?? "";
  return all.toSorted((a, b) => (time(a) < time(b) ? 1 : time(a) > time(b) ? -1 : 0));
};

const readNext = () => void readMore(false);

function progressText(): string {
  const examinedMax = pagesRead.value * EXAMINED_MAX;
  const total = filter.value.owner ? undefined : latest.value?.threads;
  const among = total === undefined ? `up to ${count(examinedMax)}` : `up to ${count(Math.min(examinedMax, total))} of ${count(total)}`;
  return examinedMax > 0 ? ` among ${among} looked through` : "";
}

export function forgetThreads(): void {
  controller.abort();
  threads.value = [];
  cursor.value = undefined;
  isBusy.value = false;
  problem.value = undefined;
  pagesRead.value = 0;
  filter.value = { owner: "", order: "updated", metadata: undefined };
  forgetPreviews();
}

export function ThreadsPage() {
  const [id, setId] = useState("");
  const [owner, setOwner] = useState(filter.value.owner);
  const [name, setName] = useState(filter.value.metadata?.[0] ?? "");
  const [text, setText] = useState(filter.value.metadata?.[1] ?? "");
  useEffect(() => {
    void readMore(true);
  }, [recoveries.value]);
  const search = (event: Event) => {
    event.preventDefault();
    const threadId = id.trim();
    if (isThreadId(threadId)) return go(hrefOfThread(threadId));
    if (threadId) return void (problem.value = NO_ID);
    filter.value = { ...filter.value, owner, metadata: name ? [name, text] : undefined };
    void readMore(true);
  };
  const list = threads.value;
  const isSearch = filter.value.metadata !== undefined;
  const isFiltered = isSearch || filter.value.owner !== "";
  return (
    <>
      <header class="page-head">
        <h1>Threads</h1>
        <span class="actions">
          <button type="button" onClick={() => void readMore(true)}>
            Refresh
          </button>
          <a class="button" href="#/playground">
            Playground
          </a>
        </span>
      </header>
      <form class="filters" onSubmit={search}>
        <label class="field">
          <span>Id</span>
          <input type="search" data-search placeholder="thrd_…" spellcheck={false} value={id} onInput={(event) => setId(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Owner</span>
          <input type="search" value={owner} onInput={(event) => setOwner(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Metadata key</span>
          <input type="search" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>has the text</span>
          <input type="search" value={text} disabled={!name} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {filter.value.owner && (
          <label class="field">
            <span>Newest by</span>
            <select
              value={filter.value.order}
              onChange={(event) => {
                filter.value = { ...filter.value, order: event.currentTarget.value as "updated" | "created" };
                void readMore(true);
              }}
            >
              <option value="updated">last write</option>
              <option value="created">first write</option>
            </select>
          </label>
        )}
        <button type="submit" class="primary">
          Search
        </button>
      </form>
      {problem.value && <Failure problem={problem.value} onRetry={readNext} />}
      <p class="dim" role="status">
        {count(list.length)} {list.length === 1 ? "thread" : "threads"}
        {isBusy.value ? ", reading …" : isComplete.value ? "" : " so far"}
        {isSearch && !isComplete.value && progressText()}
        {!isBusy.value && list.length > 0 && (isComplete.value || filter.value.owner ? ", newest first" : ", in order of id: name an owner to have the newest first")}
        {!isBusy.value && !isComplete.value && cursor.value !== undefined && (
          <>
            {" "}
            <button type="button" onClick={readNext}>
              {isSearch ? "Search on" : "Read on"}
            </button>
          </>
        )}
      </p>
      {list.length === 0 && !isBusy.value && isComplete.value && (
        <Empty title={isFiltered ? "No thread fits." : "There are no threads yet."}>
          {isFiltered ? (
            <p>Owner and metadata must match exactly, including case.</p>
          ) : (
            <p>
              Create a thread in the <a href="#/playground">playground</a>, or with your application's first write.
            </p>
          )}
        </Empty>
      )}
      <VirtualList
        name="Threads"
        length={list.length}
        rowHeight={64}
        onNearEnd={readNext}
        row={(index, properties) => <ThreadRow key={list[index]!.id} thread={list[index]!} refresh={refreshes.value} properties={properties} />}
      />
    </>
  );
}
