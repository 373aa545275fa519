/** Figures for a replica at one point in time. A member is undefined if the response does not contain it. */
export interface Snapshot {
  replica: string;
  startedAt: number;
  at: number;
  /** Number of requests since the process started, by method and route. */
  requests: Map<string, number>;
  errors: number | undefined;
  /** Latencies in ms: percentiles for the last minute, or histogram counts since the process started. */
  latency: Latency;
  store: Latency;
  routes: RouteFigures[];
  storeRows: StoreFigures[];
  threads: number | undefined;
  /** Number since the process started. */
  created: number | undefined;
  ended: number | undefined;
  /** Sizes of states after writes, in bytes. */
  sizes: Latency;
  memoryBytes: number | undefined;
  memoryLimitBytes: number | undefined;
  connections: number | undefined;
  streams: number | undefined;
  lagMs: number | undefined;
  hot: HotThreads | undefined;
}

export type Ranking = readonly (readonly [id: string, figure: number])[];

export interface HotThreads {
  windowSeconds: number;
  writes: Ranking | undefined;
  reads: Ranking | undefined;
  bytes: Ranking | undefined;
  largest: Ranking | undefined;
}

export type Latency = { percentiles: Percentiles } | { buckets: Buckets } | undefined;

export interface Percentiles {
  p50: number | null;
  p90: number | null;
  p99: number | null;
}

/** Cumulative counts by upper bound. */
export type Buckets = Map<number, number>;

export interface RouteFigures extends Percentiles {
  route: string;
  requests: number;
  errors: number | undefined;
}

export interface StoreFigures extends Percentiles {
  operation: string;
  calls: number;
  failures: number | undefined;
}

/** Figures for one or more replicas, for the time between two snapshots. */
export interface Sample {
  at: number;
  rates: Map<string, number>;
  total: number | null;
  latency: Percentiles;
  store: Percentiles;
  sizes: Percentiles;
  threads: number | null;
  /** Per second. */
  created: number | null;
  ended: number | null;
  memoryBytes: number | null;
  lagMs: number | null;
}

export interface Point extends Sample {
  replicas: ReadonlyMap<number, Sample>;
}

const NO_PERCENTILES: Percentiles = { p50: null, p90: null, p99: null };

export function sampleOf(before: Snapshot | undefined, after: Snapshot): Sample {
  const seconds = before ? (after.at - before.at) / 1_000 : 0;
  const rates = new Map<string, number>();
  let total: number | null = null;
  if (before && seconds > 0) {
    total = 0;
    for (const [route, count] of after.requests) {
      const rate = Math.max(0, count - (before.requests.get(route) ?? 0)) / seconds;
      rates.set(route, rate);
      total += rate;
    }
  }
  const rate = (earlier: number | undefined, later: number | undefined) =>
    earlier === undefined || later === undefined || seconds <= 0 ? null : Math.max(0, later - earlier) / seconds;
  return {
    at: after.at,
    created: rate(before?.created, after.created),
    ended: rate(before?.ended, after.ended),
    rates,
    total,
    latency: percentiles(before?.latency, after.latency),
    store: percentiles(before?.store, after.store),
    // sizes are counted since the process started, so a single snapshot cannot show recent sizes
    sizes: before ? percentiles(before.sizes, after.sizes) : NO_PERCENTILES,
    threads: after.threads ?? null,
    memoryBytes: after.memoryBytes ?? null,
    lagMs: after.lagMs ?? null,
  };
}

export function percentiles(before: Latency, after: Latency): Percentiles {
  if (!after) return NO_PERCENTILES;
  if ("percentiles" in after) return after.percentiles;
  const earlier = before && "buckets" in before ? before.buckets : new Map<number, number>();
  const counts = [...after.buckets].sort(([a], [b]) => a - b).map(([bound, count]) => [bound, count - (earlier.get(bound) ?? 0)] as const);
  const at = (fraction: number) => quantile(counts, fraction);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/** Estimates a quantile from a cumulative histogram. Interpolates linearly within a bucket, as Prometheus does. */
function quantile(counts: (readonly [number, number])[], fraction: number): number | null {
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const target = fraction * total;
  let [low, below] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= target) {
      if (!Number.isFinite(bound)) return low;
      return count === below ? bound : low + ((bound - low) * (target - below)) / (count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}
