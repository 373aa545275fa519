import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { NO_ID, type Problem, asProblem } from "../api/problem.js";
import { returns } from "../api/request.js";
import { type ThreadFilter, listThreads } from "../api/threads.js";
import type { Thread } from "../api/types.js";
import { count, shortId } from "../format.js";
import { hrefOfThread, isThreadId } from "../ids.js";
import { membersOf } from "../json/text.js";
import { excerpt, readableExcerpt } from "../json/visible.js";
import { go } from "../route.js";
import { latest } from "../stats/collector.js";
import { titleOf } from "../title.js";
import { Bar } from "../ui/bar.js";
import { Copy } from "../ui/copy.js";
import { Empty, Failure } from "../ui/notices.js";
import { Ago, Left } from "../ui/time.js";
import { VirtualList } from "../ui/virtual-list.js";

/** Threads that one step reads. The service lists them in order of id; if the first step has all, the console sorts them. */
const STEP = 1_000;
/** Pages that one step reads, since those of a filter may be empty. */
const PAGES_MAX = 50;
/** Threads that the service looks at for one page of a filter. */
const LOOKED_AT_MAX = 1_000;

// The filter outlives the page, so that going back finds the same list.
const filter = signal<ThreadFilter>({ owner: "", order: "updated", metadata: undefined });
const threads = signal<Thread[]>([]);
const cursor = signal<string | null | undefined>(undefined);
const isBusy = signal(false);
/** Pages that were read so far. */
const pagesRead = signal(0);
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
  } else if (isBusy.value || isComplete.value) return;
  const { signal } = controller;
  isBusy.value = true;
  problem.value = undefined;
  const wanted = isStart && filter.value.owner ? 100 : threads.value.length + STEP;
  try {
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const page = await listThreads(filter.value, cursor.value ?? null, signal);
      if (signal.aborted) return;
      cursor.value = page.next;
      pagesRead.value++;
      const all = threads.value.concat(page.items);
      threads.value = page.next === null && !filter.value.owner ? newestFirst(all) : all;
      if (page.next === null || all.length >= wanted) break;
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

const readOn = () => void readMore(false);

/** The number of threads that a search has looked through, at most, and that of all if the service says it. */
function lookedAt(): string {
  const most = pagesRead.value * LOOKED_AT_MAX;
  const all = filter.value.owner ? undefined : latest.value?.threads;
  const among = all === undefined ? `up to ${count(most)}` : `up to ${count(Math.min(most, all))} of ${count(all)}`;
  return most > 0 ? ` among ${among} looked through` : "";
}

/** Forgets the list, as when the key changes. */
export function forgetThreads(): void {
  controller.abort();
  threads.value = [];
  cursor.value = undefined;
  isBusy.value = false;
  problem.value = undefined;
  pagesRead.value = 0;
  filter.value = { owner: "", order: "updated", metadata: undefined };
}

export function ThreadsPage() {
  const [id, setId] = useState("");
  const [owner, setOwner] = useState(filter.value.owner);
  const [name, setName] = useState(filter.value.metadata?.[0] ?? "");
  const [text, setText] = useState(filter.value.metadata?.[1] ?? "");
  useEffect(() => {
    void readMore(true);
  }, [returns.value]);
  const search = (event: Event) => {
    event.preventDefault();
    const wanted = id.trim();
    if (isThreadId(wanted)) return go(hrefOfThread(wanted));
    if (wanted) return void (problem.value = NO_ID);
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
      {problem.value && <Failure problem={problem.value} onRetry={readOn} />}
      <p class="dim" role="status">
        {count(list.length)} {list.length === 1 ? "thread" : "threads"}
        {isBusy.value ? ", reading …" : isComplete.value ? "" : " so far"}
        {isSearch && !isComplete.value && lookedAt()}
        {!isBusy.value && list.length > 0 && (isComplete.value || filter.value.owner ? ", newest first" : ", in order of id: name an owner to have the newest first")}
        {!isBusy.value && !isComplete.value && cursor.value !== undefined && (
          <>
            {" "}
            <button type="button" onClick={readOn}>
              {isSearch ? "Search on" : "Read on"}
            </button>
          </>
        )}
      </p>
      {list.length === 0 && !isBusy.value && isComplete.value && (
        <Empty title={isFiltered ? "No thread fits." : "There are no threads yet."}>
          {isFiltered ? (
            <p>Owner and metadata are compared whole and with their case.</p>
          ) : (
            <p>
              Create one in the <a href="#/playground">playground</a>, or with the first write of your application.
            </p>
          )}
        </Empty>
      )}
      <VirtualList
        name="Threads"
        length={list.length}
        rowHeight={64}
        onNearEnd={readOn}
        row={(index, { isActive: _, ...properties }) => {
          const thread = list[index]!;
          const title = titleOf(thread.metadata);
          return (
            <div key={thread.id} role="listitem" {...properties} tabIndex={-1} class="thread-row" onKeyDown={(event) => {
              if (event.key === "Enter" && event.target === event.currentTarget) go(hrefOfThread(thread.id));
            }}>
              <a class="thread-link" href={hrefOfThread(thread.id)}>
                {title && <bdi class="thread-title ellipsis">{title}</bdi>}
                <span class="ellipsis">
                  <code class={title ? "dim" : ""}>{shortId(thread.id)}</code> <bdi>{thread.owner ? excerpt(thread.owner, 60) : ""}</bdi>
                </span>
              </a>
              <span class="thread-meta ellipsis dim">{summary(thread.metadata, title !== undefined)}</span>
              <Bar value={thread.size_bytes} max={thread.limit_bytes} name="Size of the state" />
              <span class="thread-numbers">
                <span title="Version">v{count(thread.version)}</span>
                <span title="Keys">{count(thread.keys)} {thread.keys === 1 ? "key" : "keys"}</span>
              </span>
              <span class="thread-times">
                <Ago at={thread.updated_at} />
                <span class="dim">
                  <Left until={thread.expires_at} /> left
                </span>
              </span>
              <Copy text={thread.id} name="id" />
            </div>
          );
        }}
      />
    </>
  );
}

/** The first members of the metadata, without a title that the row begins with. */
function summary(metadata: string, hasTitle: boolean): string {
  const members = [...membersOf(metadata)].filter(([key]) => !hasTitle || key !== "title").slice(0, 4);
  return members.map(([key, value]) => `${excerpt(key, 30)}: ${readableExcerpt(value, 60)}`).join("  ");
}
