import { signal } from "@preact/signals";
import { asProblem } from "../api/problem.js";
import { listThreads } from "../api/threads.js";
import type { Thread } from "../api/types.js";
import { bytes, count } from "../format.js";
import { can } from "../session.js";
import { announce } from "../ui/announce.js";
import { Bar } from "../ui/bar.js";
import { ThreadId } from "../ui/copy.js";
import { Empty, Failure, Loading, Missing } from "../ui/notices.js";
import { latest, source, statsProblem } from "../stats/collector.js";
import type { Ranking } from "../stats/samples.js";

const ROWS = 20;

export function StatisticsPage() {
  const hot = latest.value?.hot;
  const problem = statsProblem.value;
  return (
    <>
      <h1>Statistics</h1>
      {!can("admin") && <Missing right="admin" />}
      {can("admin") && problem?.status === 404 && (
        <Empty title="This server does not offer hot threads.">
          <p>
            Hot threads come from <code>GET /v1/stats</code>, which this server version does not have.
          </p>
        </Empty>
      )}
      {problem && problem.status !== 404 && <Failure problem={problem} />}
      {can("admin") && !hot && !problem && source.value === undefined && <Loading />}
      {hot && (
        <>
          <p class="dim">All replicas that answered in the last minute, each about its last {hot.windowSeconds} seconds. Read every 5 seconds.</p>
          <div class="columns">
            <List title="Most writes" rows={hot.writes} figure={count} />
            <List title="Most reads" rows={hot.reads} figure={count} />
            <List title="Most bytes" rows={hot.bytes} figure={bytes} />
            <List title="Largest states seen" rows={hot.largest} figure={bytes} />
          </div>
        </>
      )}
      {can("threads.read") && <Largest />}
    </>
  );
}

function List({ title, rows, figure }: { title: string; rows: Ranking | undefined; figure: (value: number) => string }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {!rows && <p class="dim">Not offered.</p>}
      {rows?.length === 0 && <p class="dim">None in this period.</p>}
      <ol class="rows">
        {rows?.slice(0, ROWS).map(([id, value]) => (
          <li key={id} class="row" data-line tabIndex={-1}>
            <ThreadId id={id} />
            <span class="grow" />
            <span>{figure(value)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

interface Search {
  isRunning: boolean;
  seen: number;
  bytes: number;
  largest: Thread[];
}

const search = signal<Search | undefined>(undefined);
let controller = new AbortController();

/** Lists all threads, without extending their lifetimes, and remembers the largest threads. */
async function find(): Promise<void> {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  let cursor: string | null = null;
  let state: Search = { isRunning: true, seen: 0, bytes: 0, largest: [] };
  search.value = state;
  try {
    do {
      const page = await listThreads({ owner: "", order: "updated", metadata: undefined }, cursor, signal);
      if (signal.aborted) return;
      cursor = page.next;
      const largest = [...state.largest, ...page.items].sort((a, b) => b.size_bytes - a.size_bytes).slice(0, ROWS);
      const sum = page.items.reduce((sum, { size_bytes }) => sum + size_bytes, state.bytes);
      state = { isRunning: cursor !== null, seen: state.seen + page.items.length, bytes: sum, largest };
      search.value = state;
    } while (cursor !== null);
  } catch (error) {
    if (signal.aborted) return;
    announce(asProblem(error).message);
    search.value = { ...state, isRunning: false };
  }
}

function Largest() {
  const state = search.value;
  return (
    <section class="card">
      <div class="card-head">
        <h2>Large states among all threads</h2>
        {state?.isRunning ? (
          <button
            type="button"
            onClick={() => {
              controller.abort();
              search.value = { ...state, isRunning: false };
            }}
          >
            Stop
          </button>
        ) : (
          <button type="button" data-search onClick={() => void find()}>
            {state ? "Search again" : "Search"}
          </button>
        )}
      </div>
      {!state && <p class="dim">The search lists all threads, 100 per request. It does not extend their lifetimes.</p>}
      {state && (
        <p role="status">
          {count(state.seen)} threads with {bytes(state.bytes)} {state.isRunning ? "so far" : "in total"}
        </p>
      )}
      <ol class="rows">
        {state?.largest.map((thread) => (
          <li key={thread.id} class="row" data-line tabIndex={-1}>
            <ThreadId id={thread.id} />
            <span class="grow" />
            <Bar value={thread.size_bytes} max={thread.limit_bytes} name="Size of the state" />
          </li>
        ))}
      </ol>
    </section>
  );
}

export function forgetSearch(): void {
  controller.abort();
  search.value = undefined;
}
