import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Problem, asProblem } from "../api/problem.js";
import { listArchives, listThreads } from "../api/threads.js";
import { count } from "../format.js";
import { hashOf, recall, remember } from "../ids.js";
import { Empty, Failure } from "../ui/notices.js";

/**
 * Shows the page for the ID with the given hash. If this tab does not know the ID, for example because the user opened
 * a shared link, searches all threads or archives for it.
 */
export function Finder({ hash, among, page }: { hash: string; among: "threads" | "archives"; page: (id: string) => ComponentChild }) {
  const [id, setId] = useState(() => recall(hash));
  const [seen, setSeen] = useState(0);
  const [isMissing, setMissing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    if (id) return;
    const controller = new AbortController();
    setProblem(undefined);
    search(hash, among, setSeen, controller.signal).then(
      (found) => {
        if (controller.signal.aborted) return;
        if (found) {
          remember(found);
          setId(found);
        } else setMissing(true);
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      },
    );
    return () => controller.abort();
  }, [hash, id, attempt]);

  if (id) return <>{page(id)}</>;
  return (
    <>
      <h1>{among === "threads" ? "Thread" : "Archive"}</h1>
      {problem ? (
        <Failure problem={problem} onRetry={() => setAttempt(attempt + 1)} />
      ) : isMissing ? (
        <Empty title="No thread has this address.">
          <p>
            Addresses contain a hash of the id, {hash}. Among {count(seen)} threads and archives there is none with it: it has ended and left the
            archives, moved to a new id, or belongs to another service.
          </p>
        </Empty>
      ) : (
        <Empty title="Searching for the thread of this address">
          <p role="status">{count(seen)} seen. Addresses contain a hash of the id, so the console compares the ids of all threads.</p>
        </Empty>
      )}
    </>
  );
}

async function search(hash: string, among: "threads" | "archives", onSeen: (seen: number) => void, signal: AbortSignal): Promise<string | undefined> {
  let seen = 0;
  const lists = {
    threads: (cursor: string | null) => listThreads({ owner: "", order: "updated", metadata: undefined }, cursor, signal),
    archives: (cursor: string | null) => listArchives(cursor, undefined, signal),
  };
  for (const list of among === "threads" ? [lists.threads, lists.archives] : [lists.archives, lists.threads]) {
    let cursor: string | null = null;
    do {
      const page: { items: { id: string }[]; next: string | null } = await list(cursor);
      const found = page.items.find(({ id }) => hashOf(id).startsWith(hash));
      if (found) return found.id;
      seen += page.items.length;
      onSeen(seen);
      cursor = page.next;
    } while (cursor !== null && !signal.aborted);
  }
  return undefined;
}
