import { effect, signal } from "@preact/signals";
import { type Problem, asProblem } from "../api/problem.js";
import { call, isReachable } from "../api/request.js";
import { can, session } from "../session.js";
import { snapshotOf } from "./metrics.js";
import { type Replica, Replicas } from "./replicas.js";
import type { Point, Sample, Snapshot } from "./samples.js";
import { type Stats, snapshotOfStats } from "./stats.js";

const INTERVAL_MS = 5_000;
/** Interval before the second point. Short, because rates can be shown only after two points. */
const FIRST_INTERVAL_MS = 1_000;
/** Maximum number of points. They cover 15 minutes. */
const POINTS_MAX = 180;
/** Maximum number of calls to each URL per point. Makes one call per replica, to reach all of them. */
const CALLS_MAX = 4;

export type Source = "stats" | "metrics" | "nothing";

export const source = signal<Source | undefined>(undefined);
export const points = signal<readonly Point[]>([]);
export const latest = signal<Snapshot | undefined>(undefined);
export const replicas = signal<readonly Replica[]>([]);
export const statsProblem = signal<Problem | undefined>(undefined);

/** Figures since the login, separate by source, because `/v1/stats` and `/metrics` identify replicas differently. */
class Series {
  readonly stats = new Replicas();
  readonly metrics = new Replicas();
  hasStats: boolean | undefined;
}

let series = new Series();

async function collect(): Promise<void> {
  const current = series;
  const replicaCount = Math.max(1, current.stats.activeAt(Date.now()).length, current.metrics.activeAt(Date.now()).length);
  const calls = Array.from({ length: Math.min(CALLS_MAX, replicaCount) }, () => [readStats, readMetrics]).flat();
  await Promise.all(shuffled(calls).map((read) => read(current)));
  if (current === series) publish();
}

/** Shuffles calls, because a round-robin load balancer could otherwise always send a call to the same replica. */
const shuffled = <T>(items: T[]): T[] => items.map((item) => [Math.random(), item] as const).sort(([a], [b]) => a - b).map(([, item]) => item);

function publish(): void {
  const at = Date.now();
  const { stats, metrics } = series;
  const hasStats = stats.activeAt(at).length > 0;
  const main = hasStats ? stats : metrics;
  const snapshot = main.snapshot(at);
  source.value = hasStats ? "stats" : snapshot ? "metrics" : "nothing";
  replicas.value = main.activeAt(at);
  if (!snapshot) return;
  // only `/metrics` has these values
  const { created, ended, sizes } = metrics.snapshot(at) ?? snapshot;
  latest.value = { ...snapshot, created, ended, sizes };
  const sample = main.sample(at)!;
  const written: Pick<Sample, "created" | "ended" | "sizes"> = metrics.sample(at) ?? sample;
  const point = {
    ...sample,
    created: written.created,
    ended: written.ended,
    sizes: written.sizes,
    at,
    replicas: new Map(replicas.value.map(({ number, sample }) => [number, sample])),
  };
  points.value = [...points.value, point].slice(-POINTS_MAX);
}

/** Reads `/v1/stats`, unless the server does not support it or the key lacks the `admin` right. */
async function readStats(current: Series): Promise<void> {
  if (!can("admin") || current.hasStats === false) return;
  try {
    const { text } = await call("/v1/stats");
    current.hasStats = true;
    current.stats.add(snapshotOfStats(JSON.parse(text) as Stats, Date.now()));
    if (current === series) statsProblem.value = undefined;
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === 404) current.hasStats = false;
    if (current === series) statsProblem.value = problem;
  }
}

/** Reads `/metrics`, unless the server serves its metrics at a different address. */
async function readMetrics(current: Series): Promise<void> {
  try {
    current.metrics.add(snapshotOf((await call("/metrics")).text, Date.now()));
  } catch {
  }
}

let timer: ReturnType<typeof setTimeout> | undefined;

async function tick(): Promise<void> {
  const current = series;
  if (!document.hidden && isReachable.value) await collect();
  if (current === series) timer = setTimeout(() => void tick(), points.value.length < 2 ? FIRST_INTERVAL_MS : INTERVAL_MS);
}

// Collects figures during the whole session, so that the overview can plot the past.
effect(() => {
  const isOpen = session.value !== undefined;
  clearTimeout(timer);
  timer = undefined;
  series = new Series();
  source.value = undefined;
  points.value = [];
  latest.value = undefined;
  replicas.value = [];
  statsProblem.value = undefined;
  if (isOpen) timer = setTimeout(() => void tick(), 0);
});
