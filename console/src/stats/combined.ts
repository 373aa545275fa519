import type { HotThreads, Latency, Percentiles, Ranking, RouteFigures, Sample, Snapshot, StoreFigures } from "./samples.js";

/**
 * Combines the figures of several replicas. Adds counts and rates. Takes percentiles from the slowest replica, and
 * figures for the shared store from the newest snapshot.
 */
export function combinedSnapshot(snapshots: readonly Snapshot[]): Snapshot | undefined {
  const newest = newestOf(snapshots);
  if (!newest || snapshots.length === 1) return newest;
  return {
    ...newest,
    requests: sumsOf(snapshots.map(({ requests }) => requests)),
    errors: sum(snapshots.map(({ errors }) => errors)),
    routes: merged(snapshots.flatMap(({ routes }) => routes), ({ route }) => route, addRoute),
    storeRows: merged(snapshots.flatMap(({ storeRows }) => storeRows), ({ operation }) => operation, addStore),
    created: sum(snapshots.map(({ created }) => created)),
    ended: sum(snapshots.map(({ ended }) => ended)),
    sizes: addedBuckets(snapshots.map(({ sizes }) => sizes)),
    connections: sum(snapshots.map(({ connections }) => connections)),
    streams: sum(snapshots.map(({ streams }) => streams)),
    lagMs: highest(snapshots.map(({ lagMs }) => lagMs)),
    hot: combinedHot(snapshots.flatMap(({ hot }) => hot ?? [])),
  };
}

/** Combines samples of replicas like `combinedSnapshot`. */
export function combinedSample(samples: readonly Sample[]): Sample | undefined {
  const newest = newestOf(samples);
  if (!newest || samples.length === 1) return newest;
  return {
    ...newest,
    rates: sumsOf(samples.map(({ rates }) => rates)),
    total: sum(samples.map(({ total }) => total)) ?? null,
    latency: slowest(samples.map(({ latency }) => latency)),
    store: slowest(samples.map(({ store }) => store)),
    sizes: slowest(samples.map(({ sizes }) => sizes)),
    created: sum(samples.map(({ created }) => created)) ?? null,
    ended: sum(samples.map(({ ended }) => ended)) ?? null,
    lagMs: highest(samples.map(({ lagMs }) => lagMs)) ?? null,
  };
}

function combinedHot(all: HotThreads[]): HotThreads | undefined {
  const [first] = all;
  if (!first) return undefined;
  const summed = (of: (hot: HotThreads) => Ranking | undefined) => ranked(all.map(of), (a, b) => a + b);
  return {
    windowSeconds: Math.max(...all.map(({ windowSeconds }) => windowSeconds)),
    writes: summed(({ writes }) => writes),
    reads: summed(({ reads }) => reads),
    bytes: summed(({ bytes }) => bytes),
    largest: ranked(all.map(({ largest }) => largest), Math.max),
  };
}

function ranked(rankings: (Ranking | undefined)[], add: (a: number, b: number) => number): Ranking | undefined {
  const figures = folded(rankings.flatMap((ranking) => ranking ?? []), add);
  return rankings.some((ranking) => ranking) ? [...figures].sort(([, a], [, b]) => b - a) : undefined;
}

function folded<K, V>(entries: readonly (readonly [K, V])[], add: (a: V, b: V) => V): Map<K, V> {
  const result = new Map<K, V>();
  for (const [key, value] of entries) result.set(key, result.has(key) ? add(result.get(key)!, value) : value);
  return result;
}

type Maybe = number | null | undefined;

const isNumber = (value: Maybe): value is number => value !== null && value !== undefined;

function sum(values: Maybe[]): number | undefined {
  const numbers = values.filter(isNumber);
  return numbers.length > 0 ? numbers.reduce((sum, value) => sum + value, 0) : undefined;
}

function highest(values: Maybe[]): number | undefined {
  const numbers = values.filter(isNumber);
  return numbers.length > 0 ? Math.max(...numbers) : undefined;
}

const slowest = (all: Percentiles[]): Percentiles => ({
  p50: highest(all.map(({ p50 }) => p50)) ?? null,
  p90: highest(all.map(({ p90 }) => p90)) ?? null,
  p99: highest(all.map(({ p99 }) => p99)) ?? null,
});

function newestOf<T extends { at: number }>(all: readonly T[]): T | undefined {
  return all.toSorted((a, b) => b.at - a.at)[0];
}

export function sumsOf<K>(all: ReadonlyMap<K, number>[]): Map<K, number> {
  return folded(all.flatMap((counts) => [...counts]), (a, b) => a + b);
}

function addedBuckets(all: Latency[]): Latency {
  const buckets = all.flatMap((one) => (one && "buckets" in one ? [one.buckets] : []));
  return buckets.length > 0 ? { buckets: sumsOf(buckets) } : undefined;
}

function merged<T>(rows: T[], nameOf: (row: T) => string, add: (a: T, b: T) => T): T[] {
  return [...folded(rows.map((row) => [nameOf(row), row] as const), add).values()];
}

const addRoute = (a: RouteFigures, b: RouteFigures): RouteFigures => ({
  route: a.route,
  requests: a.requests + b.requests,
  errors: sum([a.errors, b.errors]),
  ...slowest([a, b]),
});

const addStore = (a: StoreFigures, b: StoreFigures): StoreFigures => ({
  operation: a.operation,
  calls: a.calls + b.calls,
  failures: sum([a.failures, b.failures]),
  ...slowest([a, b]),
});
