import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short } from "../format.js";
import { shownTheme } from "../theme.js";

/** A line of a plot. */
export interface Line {
  label: string;
  values: (number | null)[];
}

/** Seconds that a plot shows at least. */
const LEAST_SECONDS = 60;

/** The beginning and the end of a plot. uPlot's own range for a single time is years. */
function span(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? Date.now() / 1_000;
  return [Math.min(times[0] ?? last, last - LEAST_SECONDS), last];
}

/** Lines over time. */
export function Plot({ title, unit, times, lines }: { title: string; unit: string; times: number[]; lines: Line[] }) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const labels = lines.map(({ label }) => label).join("\n");

  useEffect(() => {
    const element = ref.current!;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { live: true },
        cursor: { drag: { x: false, y: false } },
        scales: {
          x: { range: ({ data: [times] }) => span(times) },
          y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max || 1) * 1.1] },
        },
        axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => short(tick)) }],
        series: [
          { value: (_, time) => (time === null ? "–" : new Date(time * 1_000).toLocaleTimeString()) },
          ...labels.split("\n").map((label, i) => ({
            label,
            stroke: color(`--plot-${(i % 6) + 1}`),
            width: 1.5,
            spanGaps: false,
            value: (_: uPlot, value: number | null) => (value === null ? "–" : `${short(value)} ${unit}`),
          })),
        ],
      },
      [times, ...lines.map(({ values }) => values)] as uPlot.AlignedData,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [labels, unit, shownTheme.value]);

  useEffect(() => plot.current?.setData([times, ...lines.map(({ values }) => values)] as uPlot.AlignedData), [times]);

  const newest = lines.map(({ label, values }) => `${label} ${short(values.at(-1))}`).join(", ");
  return (
    <figure class="plot">
      <figcaption>
        {title} <span class="dim">{unit}</span>
      </figcaption>
      <div ref={ref} role="img" aria-label={`${title} in ${unit}, now: ${newest}`} />
    </figure>
  );
}
