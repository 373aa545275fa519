import { type Child, type Kind, type Span, bytesOf, children, kindAt } from "./text.js";

export const GROUP_SIZE = 1_000;

/** A JSON text with a cache of its parsed parts. */
export class Doc {
  #children = new Map<number, Child[]>();
  #bytes = new Map<number, number>();

  constructor(readonly text: string) {}

  get root(): Span {
    return { start: 0, end: this.text.length };
  }

  children(span: Span): Child[] {
    let found = this.#children.get(span.start);
    if (!found) this.#children.set(span.start, (found = children(this.text, span)));
    return found;
  }

  bytes(span: Span): number {
    let bytes = this.#bytes.get(span.start);
    if (bytes === undefined) this.#bytes.set(span.start, (bytes = bytesOf(this.slice(span))));
    return bytes;
  }

  slice(span: Span): string {
    return this.text.slice(span.start, span.end);
  }
}

export interface Row {
  /** Identifies the row, even after the value has changed. */
  path: string;
  depth: number;
  doc: Doc;
  /** The key as written in the JSON text, an index, or the index range of a group. */
  label: string;
  kind: Kind | "group";
  value: Span;
  isOpen: boolean;
  /** Index range of the group's children. The end is exclusive. */
  range?: [number, number];
}

interface Level {
  span: Span;
  children: Child[];
  next: number;
  to: number;
  isGrouped: boolean;
  depth: number;
  path: string;
}

/** Returns the visible rows below a value. Does not recurse, because values may be nested 512 levels deep. */
export function rowsBelow(doc: Doc, path: string, isOpen: (path: string) => boolean): Row[] {
  const rows: Row[] = [];
  const levels: Level[] = [];
  const enter = (span: Span, depth: number, path: string, range?: [number, number]) => {
    const children = doc.children(span);
    const [next, to] = range ?? [0, children.length];
    levels.push({ span, children, next, to, isGrouped: to - next > GROUP_SIZE, depth, path });
  };
  enter(doc.root, 1, path);
  for (let level = levels.at(-1); level; level = levels.at(-1)) {
    const { span, children, next, to, depth } = level;
    if (next >= to) {
      levels.pop();
    } else if (level.isGrouped) {
      const range: [number, number] = [next, Math.min(next + GROUP_SIZE, to)];
      const path = `${level.path}\n${next}…`;
      const row: Row = { path, depth, doc, label: `${next} … ${range[1] - 1}`, kind: "group", value: span, isOpen: isOpen(path), range };
      rows.push(row);
      level.next = range[1];
      if (row.isOpen) enter(span, depth + 1, path, range);
    } else {
      const { key, value } = children[next]!;
      const label = key ? doc.slice(key) : String(next);
      const path = `${level.path}\n${label}`;
      const kind = kindAt(doc.text, value.start);
      const isNested = kind === "object" || kind === "array";
      const row: Row = { path, depth, doc, label, kind, value, isOpen: isNested && isOpen(path) };
      rows.push(row);
      level.next++;
      if (row.isOpen) enter(value, depth + 1, path);
    }
  }
  return rows;
}
