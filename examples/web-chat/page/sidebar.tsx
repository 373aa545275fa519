import { useEffect } from "react";
import type { Client, ThreadInfo } from "threadkeep";
import { useThreads } from "threadkeep/react";
import { announce, onChange } from "./chat";

interface Props {
  client: Client;
  signedId: string | undefined;
  open(signedId: string | undefined): void;
}

/** The user's conversations, newest first. */
export function Sidebar({ client, signedId, open }: Props) {
  const { threads, hasMore, loadMore, refresh } = useThreads({ limit: 50 });
  useEffect(() => onChange(() => void refresh()), [refresh]);

  // the list includes the signed id of each thread
  const opened = (thread: ThreadInfo) => client.current({ signedId: thread.signedId! });
  const rename = async (thread: ThreadInfo) => {
    const title = prompt("Title", thread.metadata.title);
    if (!title) return;
    await opened(thread).configure({ metadata: { ...thread.metadata, title } });
    announce();
  };
  const remove = async (thread: ThreadInfo) => {
    if (thread.signedId === signedId) open(undefined);
    await opened(thread).destroy();
    announce();
  };
  return (
    <nav>
      <button onClick={() => open(undefined)}>+ New chat</button>
      <ul>
        {threads.map((thread) => (
          <li key={thread.id} aria-current={thread.signedId === signedId ? "page" : undefined}>
            <button onClick={() => open(thread.signedId!)}>{thread.metadata.title}</button>
            <button title="Rename" onClick={() => rename(thread)}>✎</button>
            <button title="Delete" onClick={() => remove(thread)}>✕</button>
          </li>
        ))}
      </ul>
      {hasMore && <button onClick={loadMore}>More</button>}
    </nav>
  );
}
