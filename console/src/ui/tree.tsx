import { useMemo, useRef, useState } from "preact/hooks";
import { bytes, count } from "../format.js";
import { Doc, type Row, rowsBelow } from "../json/rows.js";
import { kindAt } from "../json/text.js";
import { readable, readableExcerpt, visible } from "../json/visible.js";
import { Copy } from "./copy.js";
import { Dialog } from "./dialog.js";
import { VirtualList } from "./virtual-list.js";

/** Maximum number of indented levels. Deeper lines show their level as a number. */
const INDENTED_MAX = 16;
const LINE_MAX = 300;
/** How many UTF-16 units of a value the dialog shows. The copy button copies the whole value, even if it is longer. */
const SHOWN_MAX = 100_000;

export interface TreeChange {
  before: string | undefined;
}

/** A collapsible tree of values. Renders all values as text, never as HTML. */
export function Tree({
  name,
  values,
  changes,
  onEdit,
  isOpenAtFirst = false,
}: {
  name: string;
  values: ReadonlyMap<string, string>;
  changes?: ReadonlyMap<string, TreeChange> | undefined;
  onEdit?: ((key: string) => void) | undefined;
  isOpenAtFirst?: boolean;
}) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [shown, setShown] = useState<{ label: string; text: string }>();
  const docs = useRef(new Map<string, Doc>());

  const { rows, keys } = useMemo(() => {
    const isOpen = (path: string) => toggled.has(path) !== (isOpenAtFirst && !path.includes("\n"));
    const rows: Row[] = [];
    const keys = new Map<Row, string>();
    const nextDocs = new Map<string, Doc>();
    for (const [key, text] of values) {
      const cached = docs.current.get(key);
      const doc = cached?.text === text ? cached : new Doc(text);
      nextDocs.set(key, doc);
      const kind = kindAt(text, 0);
      const path = JSON.stringify(key);
      const isNested = kind === "object" || kind === "array";
      const row: Row = { path, depth: 0, doc, label: path, kind, value: doc.root, isOpen: isNested && isOpen(path) };
      rows.push(row);
      keys.set(row, key);
      if (row.isOpen) for (const below of rowsBelow(doc, path, isOpen)) rows.push(below);
    }
    docs.current = nextDocs;
    return { rows, keys };
  }, [values, toggled]);

  const toggle = (path: string) =>
    setToggled((before) => {
      const after = new Set(before);
      if (!after.delete(path)) after.add(path);
      return after;
    });

  return (
    <>
      <VirtualList
        name={name}
        role="tree"
        length={rows.length}
        rowHeight={28}
        row={(index, { isActive, ...properties }) => {
          const row = rows[index]!;
          const key = keys.get(row);
          const isNested = row.kind === "object" || row.kind === "array" || row.kind === "group";
          const text = row.kind === "group" ? "" : row.doc.slice(row.value);
          const act = () => (isNested ? toggle(row.path) : setShown({ label: row.label, text }));
          const onKeyDown = (event: KeyboardEvent) => {
            if (event.target !== event.currentTarget) return;
            if (event.key === "Enter" || event.key === " " || (event.key === "ArrowRight" && isNested && !row.isOpen) || (event.key === "ArrowLeft" && row.isOpen)) {
              event.preventDefault();
              act();
            }
          };
          const isChanged = isInChange(row, key, changes, values);
          return (
            <div
              key={index}
              {...properties}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-selected={isActive}
              {...(isNested ? { "aria-expanded": row.isOpen } : {})}
              class={`tree-row${key !== undefined ? " top" : ""}${isChanged ? " changed" : ""}`}
              tabIndex={isActive || index === 0 ? 0 : -1}
              onClick={act}
              onKeyDown={onKeyDown}
            >
              <span class="tree-indent" style={{ width: `${Math.min(row.depth, INDENTED_MAX) * 14}px` }} />
              <span class="tree-mark" aria-hidden="true">
                {isNested ? (row.isOpen ? "▾" : "▸") : ""}
              </span>
              {row.depth > INDENTED_MAX && <span class="tree-level">{row.depth}</span>}
              <bdi class={row.kind === "group" ? "tree-group" : "tree-key"}>{readableExcerpt(row.label, 80)}</bdi>
              <Value row={row} text={text} />
              <span class="tree-size">{row.kind === "group" ? "" : bytes(row.doc.bytes(row.value))}</span>
              {onEdit && key !== undefined && (
                <button
                  type="button"
                  class="quiet"
                  aria-label={`Edit ${visible(key)}`}
                  onClick={(event) => {
                    event.stopPropagation();
                    onEdit(key);
                  }}
                >
                  Edit
                </button>
              )}
            </div>
          );
        }}
      />
      {shown && (
        <Dialog title={readableExcerpt(shown.label, 120)} isWide onClose={() => setShown(undefined)}>
          <WholeValue text={shown.text} />
        </Dialog>
      )}
    </>
  );
}

function Value({ row, text }: { row: Row; text: string }) {
  if (row.kind === "group") return null;
  if (row.kind === "object" || row.kind === "array") {
    const length = row.doc.children(row.value).length;
    const [open, close] = row.kind === "object" ? "{}" : "[]";
    return (
      <span class="tree-count">
        {open} {length === 0 ? "" : count(length)} {close}
      </span>
    );
  }
  return <bdi class={`tree-value ${row.kind}`}>{readableExcerpt(text, LINE_MAX)}</bdi>;
}

export function WholeValue({ text }: { text: string }) {
  return (
    <>
      <div class="actions">
        <span class="dim">{bytes(new Blob([text]).size)}</span>
        <Copy text={text} name="value" label="Copy as JSON" />
      </div>
      <pre class="whole" dir="auto" tabIndex={0} aria-label="Value">
        {readable(text.slice(0, SHOWN_MAX))}
      </pre>
      {text.length > SHOWN_MAX && <p class="dim">This is its beginning. Copy the value to get all of it.</p>}
    </>
  );
}

/** Returns whether to highlight a row: the row of a changed key, or of a new value inside a changed key. */
function isInChange(
  row: Row,
  key: string | undefined,
  changes: ReadonlyMap<string, TreeChange> | undefined,
  values: ReadonlyMap<string, string>,
): boolean {
  if (!changes || changes.size === 0) return false;
  if (key !== undefined) return changes.has(key);
  if (row.depth !== 1 || row.kind === "group") return false;
  const top = JSON.parse(row.path.slice(0, row.path.indexOf("\n"))) as string;
  const change = changes.get(top);
  if (!change || !values.has(top)) return false;
  return change.before === undefined || !change.before.includes(row.doc.slice(row.value));
}
