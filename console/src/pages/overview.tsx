import { useMemo } from "preact/hooks";
import { now } from "../clock.js";
import { bytes, count, duration, short } from "../format.js";
import { latest, replicas, samples, source } from "../stats/collector.js";
import { server } from "../session.js";
import { percentiles } from "../stats/samples.js";
import { Bar } from "../ui/bar.js";
import { Empty, Loading } from "../ui/notices.js";
import { type Line, Plot } from "../ui/plot.js";

/** Lines of the plot by route. */
const ROUTES = 6;
/** Rows of the tables. */
const ROWS = 30;
/** A replica that has not answered for that long is not counted as seen. */
const SEEN_MS = 15 * 60_000;

/** The service in the last 15 minutes. */
export function OverviewPage() {
  const list = samples.value;
  const snapshot = latest.value;
  const times = useMemo(() => list.map(({ at }) => at / 1_000), [list]);
  const routes = useMemo(() => busiest(list), [list]);
  const line = (label: string, of: (sample: (typeof list)[number]) => number | null): Line => ({ label, values: list.map(of) });

  if (source.value === "nothing")
    return (
      <>
        <h1>Overview</h1>
        <Empty title="This server offers no figures at this address.">
          <p>
            <code>GET /v1/stats</code> needs the right <code>admin</code>, and with <code>metrics_listen</code> the metrics are at another address.
          </p>
        </Empty>
      </>
    );
  const newest = list.at(-1);
  const sizes = percentiles(undefined, snapshot?.sizes);
  const seen = [...replicas.value.values()].filter((at) => now.value - at < SEEN_MS).length;
  return (
    <>
      <header class="page-head">
        <h1>Overview</h1>
        <span class="status on">live, every 5 s</span>
      </header>
      {!snapshot && <Loading />}
      {snapshot && newest && (
        <>
          <dl class="tiles">
            <Tile name="Requests" value={short(newest.total)} unit="/s" />
            <Tile name="Latency, median" value={short(newest.latency.p50)} unit="ms" />
            <Tile name="Latency, 99 %" value={short(newest.latency.p99)} unit="ms" />
            <Tile name="Store, 99 %" value={short(newest.store.p99)} unit="ms" />
            {snapshot.threads !== undefined && <Tile name="Threads" value={count(snapshot.threads)} />}
            {snapshot.created !== undefined && <Tile name="Threads created since the start" value={count(snapshot.created)} />}
            {snapshot.ended !== undefined && <Tile name="Threads ended since the start" value={count(snapshot.ended)} />}
            {sizes.p50 !== null && <Tile name="State size since the start, median" value={bytes(sizes.p50)} />}
            {sizes.p99 !== null && <Tile name="State size since the start, 99 %" value={bytes(sizes.p99)} />}
            {snapshot.memoryBytes !== undefined && (
              <div>
                <dt>Memory of the store</dt>
                <dd>
                  {snapshot.memoryLimitBytes ? (
                    <Bar value={snapshot.memoryBytes} max={snapshot.memoryLimitBytes} name="Memory of the store" />
                  ) : (
                    bytes(snapshot.memoryBytes)
                  )}
                </dd>
              </div>
            )}
            {snapshot.lagMs !== undefined && <Tile name="Event lag" value={duration(snapshot.lagMs)} />}
            {snapshot.connections !== undefined && <Tile name="Connections" value={count(snapshot.connections)} />}
            {snapshot.streams !== undefined && <Tile name="Event streams" value={count(snapshot.streams)} />}
            {snapshot.errors !== undefined && <Tile name="Errors since the start" value={count(snapshot.errors)} />}
            <Tile name="Replicas seen" value={count(seen)} />
            <Tile name="Store" value={server.value?.store === "redis" ? "Redis" : "in memory"} />
          </dl>
          {source.value === "metrics" && (
            <p class="dim">
              The figures are those of <code>/metrics</code>, and the tables count since the start of the server. With <code>GET /v1/stats</code>, which
              needs the right <code>admin</code>, they are about the last minute.
            </p>
          )}
          <div class="plots">
            <Plot
              title="Requests by route"
              unit="/s"
              times={times}
              lines={[line("all", ({ total }) => total), ...routes.map((route) => line(route, ({ rates }) => rates.get(route) ?? null))]}
            />
            <Plot
              title="Latency"
              unit="ms"
              times={times}
              lines={[line("median", ({ latency }) => latency.p50), line("90 %", ({ latency }) => latency.p90), line("99 %", ({ latency }) => latency.p99)]}
            />
            <Plot
              title="Latency of the store"
              unit="ms"
              times={times}
              lines={[line("median", ({ store }) => store.p50), line("90 %", ({ store }) => store.p90), line("99 %", ({ store }) => store.p99)]}
            />
            {snapshot.created !== undefined && (
              <Plot
                title="Threads created and ended"
                unit="/s"
                times={times}
                lines={[line("created", ({ created }) => created), line("ended", ({ ended }) => ended)]}
              />
            )}
            {snapshot.threads !== undefined && <Plot title="Threads" unit="" times={times} lines={[line("threads", ({ threads }) => threads)]} />}
            {snapshot.sizes && (
              <Plot
                title="State sizes after writes"
                unit="KiB"
                times={times}
                lines={[
                  line("median", ({ sizes }) => kib(sizes.p50)),
                  line("90 %", ({ sizes }) => kib(sizes.p90)),
                  line("99 %", ({ sizes }) => kib(sizes.p99)),
                ]}
              />
            )}
            {snapshot.memoryBytes !== undefined && (
              <Plot title="Memory of the store" unit="MiB" times={times} lines={[line("used", ({ memoryBytes }) => memoryBytes && memoryBytes / 2 ** 20)]} />
            )}
            {snapshot.lagMs !== undefined && <Plot title="Event lag" unit="ms" times={times} lines={[line("lag", ({ lagMs }) => lagMs)]} />}
          </div>
          <h2>Routes</h2>
          <Figures
            head="Route"
            rows={snapshot.routes.toSorted((a, b) => b.requests - a.requests).map(({ route, requests, ...rest }) => ({ name: route, calls: requests, ...rest }))}
          />
          <h2>Store</h2>
          <Figures
            head="Operation"
            rows={snapshot.storeRows.toSorted((a, b) => b.calls - a.calls).map(({ operation, ...rest }) => ({ name: operation, ...rest }))}
          />
        </>
      )}
    </>
  );
}

const kib = (bytes: number | null) => bytes && bytes / 2 ** 10;

function Tile({ name, value, unit = "" }: { name: string; value: string; unit?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {unit && <span class="dim"> {unit}</span>}
      </dd>
    </div>
  );
}

interface Row {
  name: string;
  calls: number;
  p50: number | null;
  p90: number | null;
  p99: number | null;
}

function Figures({ head, rows }: { head: string; rows: Row[] }) {
  if (rows.length === 0) return <p class="dim">Nothing was called yet.</p>;
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={head}>
      <table>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col">Calls</th>
            <th scope="col">Median</th>
            <th scope="col">90 %</th>
            <th scope="col">99 %</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map((row) => (
            <tr key={row.name}>
              <th scope="row">
                <code>{row.name}</code>
              </th>
              <td>{count(row.calls)}</td>
              <td>{short(row.p50)} ms</td>
              <td>{short(row.p90)} ms</td>
              <td>{short(row.p99)} ms</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The routes with the most requests in these samples. */
function busiest(list: readonly { rates: Map<string, number> }[]): string[] {
  const sums = new Map<string, number>();
  for (const { rates } of list) for (const [route, rate] of rates) sums.set(route, (sums.get(route) ?? 0) + rate);
  const sorted = [...sums].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
  return sorted
    .slice(0, ROUTES - 1)
    .map(([route]) => route)
    .sort();
}
