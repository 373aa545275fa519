import { useMemo } from "preact/hooks";
import { sumsOf } from "../../stats/combined.js";
import type { Point, Percentiles, Sample, Snapshot } from "../../stats/samples.js";
import { type Line, Plot } from "../../ui/plot.js";

/** Maximum number of lines in a plot: one for the total, and one for each of the busiest routes or each replica. */
const LINES_MAX = 6;

/** Plots the last 15 minutes. Each replica has its own series if there are several replicas. */
export function Plots({ points, latest }: { points: readonly Point[]; latest: Snapshot }) {
  const times = useMemo(() => points.map(({ at }) => at / 1_000), [points]);
  const routes = useMemo(() => busiest(points.map(({ rates }) => rates)).sort(), [points]);
  const replicas = useMemo(() => replicasOf(points), [points]);
  const line = (label: string, valueOf: (point: Point) => number | null): Line => ({ label, values: points.map(valueOf) });
  const perReplica = (valueOf: (sample: Sample) => number | null) =>
    replicas.map((number) => line(`replica ${number}`, ({ replicas }) => (replicas.has(number) ? valueOf(replicas.get(number)!) : null)));
  const percentiles = (percentilesOf: (sample: Sample) => Percentiles) => [
    line("median", (point) => percentilesOf(point).p50),
    line("90 %", (point) => percentilesOf(point).p90),
    line("99 %", (point) => percentilesOf(point).p99),
  ];
  const hasReplicas = replicas.length > 1;
  return (
    <div class="plots">
      {hasReplicas && (
        <Plot title="Requests by replica" unit="/s" times={times} lines={[line("all", ({ total }) => total), ...perReplica(({ total }) => total)]} />
      )}
      <Plot
        title="Requests by route"
        unit="/s"
        times={times}
        lines={[line("all", ({ total }) => total), ...routes.map((route) => line(route, ({ rates }) => rates.get(route) ?? null))]}
      />
      {hasReplicas ? (
        <>
          <Plot title="Latency by replica, 99 %" unit="ms" times={times} lines={perReplica(({ latency }) => latency.p99)} />
          <Plot title="Latency of the store by replica, 99 %" unit="ms" times={times} lines={perReplica(({ store }) => store.p99)} />
        </>
      ) : (
        <>
          <Plot title="Latency" unit="ms" times={times} lines={percentiles(({ latency }) => latency)} />
          <Plot title="Latency of the store" unit="ms" times={times} lines={percentiles(({ store }) => store)} />
        </>
      )}
      {latest.created !== undefined && (
        <Plot
          title="Threads created and ended"
          unit="/s"
          times={times}
          lines={[line("created", ({ created }) => created), line("ended", ({ ended }) => ended)]}
        />
      )}
      {latest.threads !== undefined && <Plot title="Threads" unit="" times={times} lines={[line("threads", ({ threads }) => threads)]} />}
      {latest.sizes && (
        <Plot title="State sizes after writes" unit="KiB" times={times} lines={percentiles(({ sizes }) => kib(sizes))} />
      )}
      {latest.memoryBytes !== undefined && (
        <Plot title="Memory of the store" unit="MiB" times={times} lines={[line("used", ({ memoryBytes }) => memoryBytes && memoryBytes / 2 ** 20)]} />
      )}
      {latest.lagMs !== undefined && <Plot title="Event lag" unit="ms" times={times} lines={[line("lag", ({ lagMs }) => lagMs)]} />}
    </div>
  );
}

const kib = ({ p50, p90, p99 }: Percentiles): Percentiles => ({ p50: p50 && p50 / 2 ** 10, p90: p90 && p90 / 2 ** 10, p99: p99 && p99 / 2 ** 10 });

function busiest<K>(all: ReadonlyMap<K, number>[]): K[] {
  const sorted = [...sumsOf(all)].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
  return sorted.slice(0, LINES_MAX - 1).map(([key]) => key);
}

function replicasOf(points: readonly Point[]): number[] {
  const numbers = new Set(points.flatMap(({ replicas }) => [...replicas.keys()]));
  return [...numbers].sort((a, b) => a - b).slice(1 - LINES_MAX);
}
