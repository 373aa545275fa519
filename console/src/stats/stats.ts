import type { HotThreads, Percentiles, Snapshot } from "./samples.js";

/** Response of `GET /v1/stats`, with only the members that the console reads. Any member may be missing. */
export interface Stats {
  replica?: { id?: string; version?: string; store?: string; started_at?: string; now?: string };
  window_seconds?: number;
  routes?: RouteStats[];
  all_routes?: RouteStats;
  store?: StoreStats[];
  all_store?: { window?: Window };
  threads?: {
    by_writes?: { thread_id: string; writes: number }[];
    by_reads?: { thread_id: string; reads: number }[];
    by_bytes?: { thread_id: string; bytes: number }[];
    largest?: { thread_id: string; size_bytes: number; seen_at?: string }[];
  };
  counts?: { threads?: number | null; bytes?: number | null; memory_limit_bytes?: number | null; connections?: number | null; event_streams?: number | null };
  events?: { lag_ms?: number | null };
}

interface Window {
  requests?: number;
  calls?: number;
  errors?: number;
  p50_ms?: number | null;
  p90_ms?: number | null;
  p99_ms?: number | null;
}

interface RouteStats {
  method?: string;
  route?: string;
  requests_total?: number;
  errors_total?: number;
  window?: Window;
}

interface StoreStats {
  part?: string;
  operation: string;
  calls_total?: number;
  failures_total?: number;
  window?: Window;
}

const percentilesOf = (window: Window | undefined): Percentiles => ({
  p50: window?.p50_ms ?? null,
  p90: window?.p90_ms ?? null,
  p99: window?.p99_ms ?? null,
});

const WINDOW_SECONDS = 60;

function hotOf({ threads, window_seconds }: Stats): HotThreads | undefined {
  if (!threads) return undefined;
  return {
    windowSeconds: window_seconds ?? WINDOW_SECONDS,
    writes: threads.by_writes?.map((row) => [row.thread_id, row.writes]),
    reads: threads.by_reads?.map((row) => [row.thread_id, row.reads]),
    bytes: threads.by_bytes?.map((row) => [row.thread_id, row.bytes]),
    largest: threads.largest?.map((row) => [row.thread_id, row.size_bytes]),
  };
}

export function snapshotOfStats(stats: Stats, at: number): Snapshot {
  const routes = stats.routes ?? [];
  const store = stats.store ?? [];
  const name = ({ method, route }: RouteStats) => `${method ?? ""} ${route ?? ""}`.trim();
  // without a total for the store, uses the busiest operation
  const all = stats.all_store ?? store.toSorted((a, b) => (b.window?.calls ?? 0) - (a.window?.calls ?? 0))[0];
  return {
    replica: `${stats.replica?.id ?? ""} ${stats.replica?.started_at ?? ""}`.trim(),
    startedAt: Date.parse(stats.replica?.started_at ?? ""),
    at,
    requests: new Map(routes.map((route) => [name(route), route.requests_total ?? 0])),
    errors: stats.all_routes?.errors_total,
    latency: { percentiles: percentilesOf(stats.all_routes?.window) },
    store: { percentiles: percentilesOf(all?.window) },
    routes: routes.map((route) => ({
      route: name(route),
      requests: route.window?.requests ?? 0,
      errors: route.window?.errors,
      ...percentilesOf(route.window),
    })),
    storeRows: store.map(({ part, operation, failures_total, window }) => ({
      // operations of different parts may have the same name
      operation: part ? `${part}.${operation}` : operation,
      calls: window?.calls ?? 0,
      failures: failures_total,
      ...percentilesOf(window),
    })),
    threads: stats.counts?.threads ?? undefined,
    created: undefined,
    ended: undefined,
    sizes: undefined,
    memoryBytes: stats.counts?.bytes ?? undefined,
    memoryLimitBytes: stats.counts?.memory_limit_bytes ?? undefined,
    connections: stats.counts?.connections ?? undefined,
    streams: stats.counts?.event_streams ?? undefined,
    lagMs: stats.events?.lag_ms ?? undefined,
    hot: hotOf(stats),
  };
}
