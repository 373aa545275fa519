import type { ComponentChild } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useActiveList } from "../keyboard.js";

const OVERSCAN_ROWS = 8;

/**
 * A list that renders only its visible lines, which all have the same height. The list scrolls with the page, so that
 * phones have only one scroll area. The keys `j` and `k` move the focus to the next and the previous line.
 */
export function VirtualList({
  name,
  length,
  rowHeight,
  row,
  role = "list",
  onNearEnd,
}: {
  name: string;
  length: number;
  rowHeight: number;
  /** Renders a line. Spread `properties` onto its outer element. */
  row: (index: number, properties: RowProperties) => ComponentChild;
  role?: "list" | "tree";
  /** Called when the user scrolls near the end. Not called again before the next scroll, to limit what is loaded. */
  onNearEnd?: (() => void) | undefined;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const [[from, to], setRange] = useState<[number, number]>([0, 40]);
  const [active, setActive] = useState(-1);
  const wantsFocus = useRef(false);
  const nearEnd = useRef(onNearEnd);
  nearEnd.current = onNearEnd;

  useLayoutEffect(() => {
    const list = ref.current!;
    const scroller = list.closest<HTMLElement>("[data-scroller]")!;
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = scroller.getBoundingClientRect().top - list.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN_ROWS);
      const last = Math.min(length, Math.ceil((top + scroller.clientHeight) / rowHeight) + OVERSCAN_ROWS);
      setRange(([a, b]) => (a === first && b === Math.max(first, last) ? [a, b] : [first, Math.max(first, last)]));
    };
    const later = () => (frame ||= requestAnimationFrame(measure));
    const onScroll = () => {
      later();
      const rest = list.getBoundingClientRect().bottom - scroller.getBoundingClientRect().bottom;
      if (rest < OVERSCAN_ROWS * rowHeight) nearEnd.current?.();
    };
    measure();
    scroller.addEventListener("scroll", onScroll, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(scroller);
    observer.observe(list.parentElement!);
    return () => {
      cancelAnimationFrame(frame);
      scroller.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, [length, rowHeight]);

  useLayoutEffect(() => {
    if (!wantsFocus.current || active < from || active >= to) return;
    wantsFocus.current = false;
    const line = ref.current!.querySelector<HTMLElement>(`[data-index="${active}"]`);
    line?.focus({ preventScroll: true });
  });

  const move = (step: number): boolean => {
    const next = Math.max(0, Math.min(length - 1, active < 0 ? 0 : active + step));
    if (next === active) return false;
    const list = ref.current!;
    const scroller = list.closest<HTMLElement>("[data-scroller]")!;
    const top = list.getBoundingClientRect().top + next * rowHeight - scroller.getBoundingClientRect().top;
    const margin = 2 * rowHeight;
    if (top < margin) scroller.scrollTop += top - margin;
    else if (top + rowHeight > scroller.clientHeight - margin) scroller.scrollTop += top + rowHeight + margin - scroller.clientHeight;
    wantsFocus.current = true;
    setActive(next);
    return true;
  };
  useActiveList({ length, move });

  const rows: ComponentChild[] = [];
  for (let index = from; index < Math.min(to, length); index++) {
    const style = { top: `${index * rowHeight}px`, height: `${rowHeight}px` };
    rows.push(row(index, { "data-index": index, style, isActive: index === active }));
  }
  return (
    <div ref={ref} class="virtual" role={role} aria-label={name} style={{ height: `${length * rowHeight}px` }}>
      {rows}
    </div>
  );
}

export interface RowProperties {
  "data-index": number;
  style: { top: string; height: string };
  isActive: boolean;
}
