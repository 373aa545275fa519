import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clockTime, short } from "../format.js";
import { shownTheme } from "../theme.js";

export interface Line {
  label: string;
  values: (number | null)[];
}

const MIN_SPAN_SECONDS = 60;
/** Minimum distance in pixels between time labels. Wide enough for labels that include seconds. */
const TIME_PIXELS = 64;

/** Returns a plot's time range. Covers at least a minute, because uPlot would show years for a single point. */
function span(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? Date.now() / 1_000;
  return [Math.min(times[0] ?? last, last - MIN_SPAN_SECONDS), last];
}

/** Shows the newest values in the legend, unless the pointer is on the plot. */
function showNewest(plot: uPlot): void {
  const newest = plot.data[0].length - 1;
  if (plot.cursor.idx == null && newest >= 0) plot.setLegend({ idx: newest }, false);
}

export function Plot({ title, unit, times, lines }: { title: string; unit: string; times: number[]; lines: Line[] }) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const labels = lines.map(({ label }) => label).join("\n");

  useEffect(() => {
    const element = ref.current!;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const instance = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { live: true },
        cursor: { drag: { x: false, y: false } },
        hooks: { setLegend: [showNewest] },
        scales: {
          x: { range: ({ data: [times] }) => span(times) },
          y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max || 1) * 1.1] },
        },
        axes: [
          { ...axis, space: TIME_PIXELS, values: (_, times, _axis, _space, step) => times.map((time) => clockTime(time * 1_000, step < 60)) },
          { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => short(tick)) },
        ],
        series: [
          { label: "Time", value: (_, time) => (time === null ? "–" : clockTime(time * 1_000)) },
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
    showNewest(instance);
    plot.current = instance;
    const observer = new ResizeObserver(() => instance.setSize({ width: element.clientWidth, height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      instance.destroy();
    };
  }, [labels, unit, shownTheme.value]);

  useEffect(() => {
    if (!plot.current) return;
    plot.current.setData([times, ...lines.map(({ values }) => values)] as uPlot.AlignedData);
    showNewest(plot.current);
  }, [times]);

  const newest = lines.map(({ label, values }) => `${label} ${short(values.at(-1))}`).join(", ");
  return (
    <figure class="plot">
      <figcaption>
        {title} <span class="dim">{unit}</span>
      </figcaption>
      <div ref={ref} role="img" aria-label={`${title}${unit && ` in ${unit}`}, now: ${newest}`} />
    </figure>
  );
}
