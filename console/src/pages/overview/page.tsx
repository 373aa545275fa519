import { server } from "../../session.js";
import { latest, points, replicas, source } from "../../stats/collector.js";
import { type Point, type Snapshot, percentiles } from "../../stats/samples.js";
import { bytes, count, duration, short } from "../../format.js";
import { Bar } from "../../ui/bar.js";
import { Empty, Loading } from "../../ui/notices.js";
import { Plots } from "./plots.js";
import { ReplicaTable, RouteTable, StoreTable } from "./tables.js";

export function OverviewPage() {
  const snapshot = latest.value;
  const newest = points.value.at(-1);
  if (source.value === "nothing")
    return (
      <>
        <h1>Overview</h1>
        <Empty title="This server reports no figures at this address.">
          <p>
            <code>GET /v1/stats</code> needs the right <code>admin</code>, and with <code>metrics_listen</code> the metrics are at another address.
          </p>
        </Empty>
      </>
    );
  return (
    <>
      <header class="page-head">
        <h1>Overview</h1>
        <span class="status on">live, every 5 s</span>
      </header>
      {!snapshot && <Loading />}
      {snapshot && newest && (
        <>
          <Tiles snapshot={snapshot} newest={newest} />
          {replicas.value.length > 1 && (
            <p class="dim">
              Rates and counts are sums over all replicas that answered in the last minute. Percentiles are from the slowest replica.
            </p>
          )}
          {source.value === "metrics" && (
            <p class="dim">
              The figures come from <code>/metrics</code>, and the tables count since the server started. With the right <code>admin</code>, they come from{" "}
              <code>GET /v1/stats</code>, and cover the last minute.
            </p>
          )}
          <Plots points={points.value} latest={snapshot} />
          {replicas.value.length > 1 && (
            <>
              <h2>Replicas</h2>
              <ReplicaTable replicas={replicas.value} />
            </>
          )}
          <h2>Routes</h2>
          <RouteTable {...snapshot} />
          <h2>Store</h2>
          <StoreTable {...snapshot} />
        </>
      )}
    </>
  );
}

function Tiles({ snapshot, newest }: { snapshot: Snapshot; newest: Point }) {
  const sizes = percentiles(undefined, snapshot.sizes);
  return (
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
      <Tile name="Replicas" value={count(replicas.value.length)} />
      <Tile name="Store" value={server.value?.store === "redis" ? "Redis" : "in memory"} />
    </dl>
  );
}

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
