import { now } from "../clock.js";
import { ago, duration } from "../format.js";

export function Ago({ at }: { at: string | null | undefined }) {
  if (!at) return <span>–</span>;
  return (
    <time dateTime={at} title={at}>
      {ago(now.value - Date.parse(at))}
    </time>
  );
}

export function Left({ until }: { until: string | null }) {
  if (!until) return <span>–</span>;
  const ms = Date.parse(until) - now.value;
  return (
    <time dateTime={until} title={until} class={ms < 60_000 ? "warn" : ""}>
      {ms <= 0 ? "over" : duration(ms)}
    </time>
  );
}
