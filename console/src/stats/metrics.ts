import { type Buckets, type Snapshot, percentiles } from "./samples.js";

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function snapshotOf(text: string, at: number): Snapshot {
  const requests = new Map<string, number>();
  const latency: Buckets = new Map();
  const store: Buckets = new Map();
  const byRoute = new Map<string, Buckets>();
  const byOperation = new Map<string, Buckets>();
  const sizes: Buckets = new Map();
  const gauges = new Map<string, number>();
  let errors = 0;
  let ended: number | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const [, name, labels = "", number] = LINE.exec(line) ?? [];
    if (!name) continue;
    const value = Number(number);
    const label = (labelName: string) => {
      for (const [, name, text] of labels.matchAll(LABEL)) if (name === labelName) return text;
      return undefined;
    };
    if (name === "threadkeep_http_requests_total") {
      const route = `${label("method")} ${label("route")}`;
      requests.set(route, (requests.get(route) ?? 0) + value);
      if (label("status")?.startsWith("5")) errors += value;
    } else if (name === "threadkeep_http_request_duration_seconds_bucket") {
      const bound = boundOf(label("le"));
      const route = label("route") ?? "";
      add(latency, bound, value);
      add(bucketsOf(byRoute, route), bound, value);
    } else if (name === "threadkeep_store_duration_seconds_bucket") {
      if (value === 0) continue;
      const bound = boundOf(label("le"));
      add(store, bound, value);
      add(bucketsOf(byOperation, label("operation") ?? ""), bound, value);
    } else if (name === "threadkeep_state_size_bytes_bucket") {
      const le = label("le");
      add(sizes, le === "+Inf" ? Infinity : Number(le), value);
    } else if (name === "threadkeep_threads_ended_total") {
      ended = (ended ?? 0) + value;
    } else if (labels === "" || name === "threadkeep_event_streams") {
      gauges.set(name, (gauges.get(name) ?? 0) + value);
    } else if (name === "threadkeep_delivery_lag_seconds") {
      gauges.set(name, Math.max(gauges.get(name) ?? 0, value));
    }
  }
  const figures = (buckets: Buckets) => percentiles(undefined, { buckets });
  const lag = gauges.get("threadkeep_delivery_lag_seconds") ?? gauges.get("threadkeep_reaper_lag_seconds");
  return {
    replica: String(gauges.get("process_start_time_seconds") ?? ""),
    startedAt: (gauges.get("process_start_time_seconds") ?? 0) * 1_000,
    at,
    requests,
    errors,
    latency: { buckets: latency },
    store: { buckets: store },
    routes: [...byRoute].map(([route, buckets]) => ({ route, requests: totalOf(buckets), errors: undefined, ...figures(buckets) })),
    storeRows: [...byOperation].map(([operation, buckets]) => ({ operation, calls: totalOf(buckets), failures: undefined, ...figures(buckets) })),
    threads: undefined,
    created: gauges.get("threadkeep_threads_created_total"),
    ended,
    sizes: { buckets: sizes },
    memoryBytes: gauges.get("threadkeep_store_memory_bytes"),
    memoryLimitBytes: gauges.get("threadkeep_store_memory_limit_bytes"),
    connections: gauges.get("threadkeep_connections"),
    streams: gauges.get("threadkeep_event_streams"),
    lagMs: lag === undefined ? undefined : lag * 1_000,
    hot: undefined,
  };
}

const boundOf = (le: string | undefined) => (le === "+Inf" ? Infinity : Number(le) * 1_000);

const add = (buckets: Buckets, bound: number, value: number) => void buckets.set(bound, (buckets.get(bound) ?? 0) + value);

function bucketsOf(all: Map<string, Buckets>, name: string): Buckets {
  let buckets = all.get(name);
  if (!buckets) all.set(name, (buckets = new Map()));
  return buckets;
}

const totalOf = (buckets: Buckets) => Math.max(0, ...buckets.values());

export function deliveriesOf(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, labels = "", value] of text.matchAll(/^threadkeep_deliveries_total\{(.*)\} (\S+)$/gm)) {
    if (!labels.includes('consumer="webhook"')) continue;
    const outcome = /outcome="([^"]*)"/.exec(labels)?.[1] ?? labels;
    counts.set(outcome, (counts.get(outcome) ?? 0) + Number(value));
  }
  return counts;
}
