import { useEffect, useState } from "preact/hooks";
import { type Problem, asProblem } from "../../api/problem.js";
import { type HistoryItem, type HistoryPage, getHistory } from "../../api/threads.js";
import { bytes, count } from "../../format.js";
import { excerpt, readable, readableExcerpt, visible } from "../../json/visible.js";
import { Bar } from "../../ui/bar.js";
import { Dialog } from "../../ui/dialog.js";
import { Empty, Failure, Loading } from "../../ui/notices.js";
import { Ago } from "../../ui/time.js";
import { WholeValue } from "../../ui/tree.js";
import type { ThreadView } from "./view.js";

export function HistoryTab({ view }: { view: ThreadView }) {
  return <History path={`/v1/threads/${view.id}/history`} changes={view.historyChanges.value} />;
}

const PAGE = 100;

export function History({ path, life, changes = 0 }: { path: string; life?: string; changes?: number }) {
  const [page, setPage] = useState<HistoryPage>();
  const [items, setItems] = useState<HistoryItem[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [shown, setShown] = useState<HistoryItem>();
  const [search, setSearch] = useState("");
  useEffect(() => {
    const controller = new AbortController();
    getHistory(path, undefined, PAGE, { life, signal: controller.signal }).then(
      (page) => {
        setPage(page);
        setItems(page.items.reverse());
        setProblem(undefined);
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      },
    );
    return () => controller.abort();
  }, [path, life, changes]);
  const more = async () => {
    try {
      const older = await getHistory(path, items.at(-1)!.seq, PAGE, { life });
      setItems([...items, ...older.items.reverse()]);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  if (problem) return <Failure problem={problem} />;
  if (!page) return <Loading />;
  if (items.length === 0)
    return (
      <Empty title="The history is empty.">
        <p>
          Append to it with <code>POST …/history</code>, or with the operation <code>append</code> in a merge.
        </p>
      </Empty>
    );
  const oldest = items.at(-1)!;
  const term = search.trim().toLowerCase();
  const found = items.filter(({ id, value }) => id.toLowerCase().includes(term) || readable(value).toLowerCase().includes(term));
  return (
    <>
      <p class="dim">
        Places {count(page.firstSeq)} to {count(page.nextSeq - 1)},{" "}
        {page.limitBytes ? <Bar value={page.sizeBytes} max={page.limitBytes} name="Size of the history" /> : bytes(page.sizeBytes)}
      </p>
      <label class="field">
        <span>Find in the {count(items.length)} items that were read</span>
        <input type="search" data-search value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      {found.length === 0 && <p class="dim">No item contains this text.</p>}
      <ul class="rows">
        {found.map((item) => (
          <li key={item.seq}>
            <button type="button" data-line class="row-button history-row" onClick={() => setShown(item)}>
              <span class="num">{count(item.seq)}</span>
              <code class="dim">{excerpt(item.id, 40)}</code>
              <bdi class="grow ellipsis">{readableExcerpt(item.value, 300)}</bdi>
              <Ago at={item.at} />
            </button>
          </li>
        ))}
      </ul>
      {oldest.seq > page.firstSeq && (
        <button type="button" onClick={more}>
          Older items
        </button>
      )}
      {shown && (
        <Dialog title={`Item ${count(shown.seq)}: ${visible(shown.id)}`} isWide onClose={() => setShown(undefined)}>
          <WholeValue text={shown.value} />
        </Dialog>
      )}
    </>
  );
}
