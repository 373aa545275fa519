import { bytes } from "../format.js";

export function Bar({ value, max, name }: { value: number; max: number; name: string }) {
  const part = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <span
      class="bar"
      role="meter"
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
      aria-valuetext={`${bytes(value)} of ${bytes(max)}`}
      title={`${bytes(value)} of ${bytes(max)}`}
    >
      <span class="bar-track">
        <span class={part > 0.9 ? "bar-fill full" : "bar-fill"} style={{ width: `${Math.max(part * 100, value > 0 ? 1 : 0)}%` }} />
      </span>
      <span class="bar-text">{bytes(value)}</span>
    </span>
  );
}
