import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { NO_ID, type Problem, asProblem } from "../api/problem.js";
import { call, recoveries } from "../api/request.js";
import { getArchive, listArchives } from "../api/threads.js";
import type { Archive } from "../api/types.js";
import { conversations } from "../chat/conversations.js";
import { Chat } from "../chat/chat.js";
import { bytes, count, shortId } from "../format.js";
import { hrefOfArchive, hrefOfThread, isThreadId } from "../ids.js";
import { excerpt, readableExcerpt } from "../json/visible.js";
import { useLoad } from "../load.js";
import { go } from "../route.js";
import { titleOf } from "../title.js";
import { can } from "../session.js";
import { announce } from "../ui/announce.js";
import { Confirm } from "../ui/confirm.js";
import { Copy } from "../ui/copy.js";
import { Empty, Failure, Loading, Missing } from "../ui/notices.js";
import { Ago } from "../ui/time.js";
import { Tree } from "../ui/tree.js";
import { VirtualList } from "../ui/virtual-list.js";
import { History } from "./thread/history-tab.js";

export function ArchivesPage() {
  const [id, setId] = useState("");
  const [since, setSince] = useState("");
  const [archives, setArchives] = useState<readonly Archive[]>([]);
  const [cursor, setCursor] = useState<string | null>();
  const [problem, setProblem] = useState<Problem>();
  const controller = useRef(new AbortController());
  const isBusy = useRef(false);

  const read = useCallback(
    async (from: string | null) => {
      if (isBusy.current) return;
      isBusy.current = true;
      const { signal } = controller.current;
      try {
        const page = await listArchives(from, since ? new Date(since).toISOString() : undefined, signal);
        if (signal.aborted) return;
        setArchives((before) => (from === null ? page.items : [...before, ...page.items]));
        setCursor(page.next);
        setProblem(undefined);
      } catch (error) {
        if (!signal.aborted) setProblem(asProblem(error));
      } finally {
        if (!signal.aborted) isBusy.current = false;
      }
    },
    [since],
  );
  useEffect(() => {
    controller.current = new AbortController();
    isBusy.current = false;
    if (can("threads.read")) void read(null);
    return () => controller.current.abort();
  }, [read, recoveries.value]);

  const readNext = useCallback(() => {
    if (cursor) void read(cursor);
  }, [read, cursor]);

  if (!can("threads.read")) return <Missing right="threads.read" />;
  const search = (event: Event) => {
    event.preventDefault();
    const threadId = id.trim();
    if (isThreadId(threadId)) go(hrefOfArchive(threadId));
    else if (threadId) setProblem(NO_ID);
  };
  return (
    <>
      <header class="page-head">
        <h1>Archives</h1>
        <button type="button" onClick={() => void read(null)}>
          Refresh
        </button>
      </header>
      <form class="filters" onSubmit={search}>
        <label class="field">
          <span>Id of a thread</span>
          <input type="search" data-search placeholder="thrd_…" spellcheck={false} value={id} onInput={(event) => setId(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Ended since</span>
          <input type="datetime-local" value={since} onInput={(event) => setSince(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Search
        </button>
      </form>
      {problem && <Failure problem={problem} onRetry={() => void read(null)} />}
      {archives.length === 0 && cursor === null && (
        <Empty title={since ? "No thread has ended since then." : "There are no archives."}>
          <p>
            A thread that expires or is destroyed is kept here for <code>archive_seconds</code> (default: seven days).
          </p>
        </Empty>
      )}
      <p class="dim" role="status">
        {count(archives.length)} {archives.length === 1 ? "archive" : "archives"}
        {cursor ? " so far" : ""}, the oldest end first{" "}
        {cursor && (
          <button type="button" onClick={readNext}>
            Read on
          </button>
        )}
      </p>
      <VirtualList
        name="Archives"
        length={archives.length}
        rowHeight={56}
        onNearEnd={readNext}
        row={(index, { isActive: _, ...properties }) => {
          const archive = archives[index]!;
          const title = titleOf(archive.metadata);
          return (
            <div key={archive.id + archive.life} role="listitem" {...properties} data-index={undefined} class="archive-row">
              <a data-index={index} class="row-button" href={hrefOfArchive(archive.id)}>
                {title && <bdi class="archive-title ellipsis">{title}</bdi>}
                <code class={title ? "dim" : ""}>{shortId(archive.id)}</code>
                <span class="chip">{archive.reason}</span>
                <span>{bytes(archive.size_bytes)}</span>
                <bdi class="grow ellipsis dim">{archive.metadata === "{}" ? "" : readableExcerpt(archive.metadata, 200)}</bdi>
                <Ago at={archive.ended_at} />
              </a>
              <Copy text={archive.id} name="id" />
            </div>
          );
        }}
      />
    </>
  );
}

export function ArchivePage({ id }: { id: string }) {
  const { value, problem, reload } = useLoad((signal) => getArchive(id, undefined, signal), [id]);
  const [isRestoring, setRestoring] = useState(false);
  const chats = value && conversations(value.state);
  return (
    <>
      <header class="page-head">
        <h1 class="with-id">
          Archive <code>{id}</code> <Copy text={id} name="id" />
        </h1>
      </header>
      {problem?.status === 404 ? (
        <Empty title="This thread has no archive.">
          <p>The thread has not ended, its archive has expired, or it was erased.</p>
          <p>
            <a href={hrefOfThread(id)}>Open the thread</a>
          </p>
        </Empty>
      ) : (
        problem && <Failure problem={problem} onRetry={reload} />
      )}
      {!value && !problem && <Loading />}
      {value && (
        <>
          <dl class="facts open">
            <div>
              <dt>Ended</dt>
              <dd>
                <Ago at={value.ended_at} />, {value.reason}
              </dd>
            </div>
            <div>
              <dt>Version</dt>
              <dd>{count(value.version)}</dd>
            </div>
            <div>
              <dt>Size</dt>
              <dd>{bytes(value.size_bytes)}</dd>
            </div>
            <div>
              <dt>History items</dt>
              <dd>{count(value.history_count ?? 0)}</dd>
            </div>
            <div class="wide">
              <dt>Metadata</dt>
              <dd>
                <bdi class="break">{readableExcerpt(value.metadata, 400)}</bdi>
              </dd>
            </div>
          </dl>
          {can("threads") && (
            <div class="actions">
              <button type="button" class="primary" onClick={() => setRestoring(true)}>
                Restore
              </button>
            </div>
          )}
          {[...chats!].slice(0, 3).map(([key, messages]) => (
            <section key={key}>
              <h2>
                <bdi>{excerpt(key, 80)}</bdi>
              </h2>
              <Chat messages={messages} name={key} />
            </section>
          ))}
          <h2>State</h2>
          <Tree name="State" values={value.state} />
          {(value.history_count ?? 0) > 0 && (
            <>
              <h2>History</h2>
              <History path={`/v1/archives/${id}/history`} life={value.life} />
            </>
          )}
        </>
      )}
      {isRestoring && value && (
        <Confirm
          title="Restore the thread"
          verb="Restore"
          onClose={() => setRestoring(false)}
          act={async () => {
            await call(`/v1/archives/${id}/restore`, { method: "POST", query: { life: value.life } });
            announce("Restored");
            go(hrefOfThread(id));
          }}
        >
          <p>Restores the thread under the same id, with its state, metadata, keys, tasks and history. Checkpoints are not restored.</p>
        </Confirm>
      )}
    </>
  );
}
