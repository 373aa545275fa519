import { effect, signal } from "@preact/signals";
import { type Problem, asProblem } from "../api/problem.js";
import { call, isReachable } from "../api/request.js";
import { can, session } from "../session.js";
import { snapshotOf } from "./metrics.js";
import { type Sample, type Snapshot, sampleOf } from "./samples.js";
import { type Stats, snapshotOfStats } from "./stats.js";

const INTERVAL_MS = 5_000;
/** 15 minutes. */
const SAMPLES_MAX = 180;
/** A process counts the start of its figures from a little later than its own. */
const SAME_START_MS = 2_000;
/** Replicas that are remembered. */
const REPLICAS_MAX = 100;

/** Where the figures come from. */
export type Source = "stats" | "metrics" | "nothing";

export const source = signal<Source | undefined>(undefined);
export const samples = signal<readonly Sample[]>([]);
export const latest = signal<Snapshot | undefined>(undefined);
export const stats = signal<Stats | undefined>(undefined);
export const statsProblem = signal<Problem | undefined>(undefined);
/** Replicas that answered, with the time of the last answer of each. */
export const replicas = signal<ReadonlyMap<string, number>>(new Map());

/** The last figures of each replica: a load balancer sends each request to another one. */
const last = new Map<string, Snapshot>();
let hasStats: boolean | undefined;

async function collect(): Promise<void> {
  const [own, metrics] = await Promise.all([fromStats(), fromMetrics()]);
  const snapshot = own && metrics && isSame(own, metrics) ? { ...own, created: metrics.created, ended: metrics.ended, sizes: metrics.sizes } : (own ?? metrics);
  source.value = own ? "stats" : metrics ? "metrics" : "nothing";
  if (!snapshot) {
    return;
  }
  const before = last.get(snapshot.replica);
  last.delete(snapshot.replica);
  last.set(snapshot.replica, snapshot);
  if (last.size > REPLICAS_MAX) last.delete(last.keys().next().value!);
  latest.value = snapshot;
  samples.value = [...samples.value, sampleOf(before, snapshot)].slice(-SAMPLES_MAX);
  replicas.value = new Map([...last].map(([replica, { at }]) => [replica, at]));
}

/** Whether both are of one process, by its start: a load balancer may have sent each request to another one. */
function isSame(own: Snapshot, metrics: Snapshot): boolean {
  return Math.abs(own.startedAt - metrics.startedAt) < SAME_START_MS;
}

/** Those of `/v1/stats`, unless this server has no such path or the key has no right to it. */
async function fromStats(): Promise<Snapshot | undefined> {
  if (!can("admin") || hasStats === false) return undefined;
  try {
    const { text } = await call("/v1/stats");
    hasStats = true;
    stats.value = JSON.parse(text) as Stats;
    statsProblem.value = undefined;
    return snapshotOfStats(stats.value, Date.now());
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === 404) hasStats = false;
    statsProblem.value = problem;
    return undefined;
  }
}

/** Those of `/metrics`, unless they are at another address. */
async function fromMetrics(): Promise<Snapshot | undefined> {
  try {
    const { text } = await call("/metrics");
    return snapshotOf(text, Date.now());
  } catch {
    return undefined;
  }
}

let timer: ReturnType<typeof setTimeout> | undefined;

async function tick(): Promise<void> {
  if (!document.hidden && isReachable.value) await collect();
  timer = setTimeout(() => void tick(), INTERVAL_MS);
}

// Figures are collected while there is a session, whichever page is shown, so that the overview has a past.
effect(() => {
  const isOpen = session.value !== undefined;
  clearTimeout(timer);
  timer = undefined;
  if (isOpen) {
    timer = setTimeout(() => void tick(), 0);
    return;
  }
  hasStats = undefined;
  last.clear();
  samples.value = [];
  latest.value = undefined;
  stats.value = undefined;
  statsProblem.value = undefined;
  source.value = undefined;
  replicas.value = new Map();
});
