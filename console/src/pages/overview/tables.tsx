import { count, short } from "../../format.js";
import type { Replica } from "../../stats/replicas.js";
import type { Percentiles, Snapshot } from "../../stats/samples.js";
import { Ago } from "../../ui/time.js";

const ROWS = 30;

export function ReplicaTable({ replicas }: { replicas: readonly Replica[] }) {
  return (
    <Table head={["Replica", "Requests", "Median", "99 %", "Started", "Answered"]}>
      {replicas.slice(-ROWS).map(({ number, snapshot, sample }) => (
        <tr key={number}>
          <th scope="row">replica {number}</th>
          <td>{short(sample.total)} /s</td>
          <td>{short(sample.latency.p50)} ms</td>
          <td>{short(sample.latency.p99)} ms</td>
          <td>
            <Ago at={new Date(snapshot.startedAt).toISOString()} />
          </td>
          <td>
            <Ago at={new Date(snapshot.at).toISOString()} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface Row extends Percentiles {
  name: string;
  calls: number;
}

export function RouteTable({ routes }: Snapshot) {
  return <Figures head="Route" rows={routes.map(({ route, requests, ...rest }) => ({ name: route, calls: requests, ...rest }))} />;
}

export function StoreTable({ storeRows }: Snapshot) {
  return <Figures head="Operation" rows={storeRows.map(({ operation, ...rest }) => ({ name: operation, ...rest }))} />;
}

function Figures({ head, rows }: { head: string; rows: Row[] }) {
  if (rows.length === 0) return <p class="dim">No calls yet.</p>;
  const sorted = rows.toSorted((a, b) => b.calls - a.calls);
  return (
    <Table head={[head, "Calls", "Median", "90 %", "99 %"]}>
      {sorted.slice(0, ROWS).map((row) => (
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
    </Table>
  );
}

function Table({ head, children }: { head: string[]; children: preact.ComponentChildren }) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={head[0]}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
