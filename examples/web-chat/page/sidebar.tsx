import { useEffect } from "react";
import type { Client } from "threadkeep";
import { useThreads } from "threadkeep/react";
import { announce, type Metadata, onChange } from "./chat";

interface Props {
  client: Client;
  /** The conversation that is open. */
  signedId: string | undefined;
  open(signedId: string | undefined): void;
}

/** The user's conversations, newest first. */
export function Sidebar({ client, signedId, open }: Props) {
  const { threads, hasMore, loadMore, refresh } = useThreads({ limit: 50 });
  useEffect(() => onChange(() => void refresh()), [refresh]);

  const rename = async (metadata: Metadata) => {
    const title = prompt("Title", metadata.title);
    if (!title) return;
    await client.current({ signedId: metadata.signedId }).configure({ metadata: { ...metadata, title } });
    announce();
  };
  const remove = async (metadata: Metadata) => {
    if (metadata.signedId === signedId) open(undefined);
    await client.current({ signedId: metadata.signedId }).destroy();
    announce();
  };
  return (
    <nav>
      <button onClick={() => open(undefined)}>+ New chat</button>
      <ul>
        {threads.map((thread) => {
          const metadata = thread.metadata as Metadata;
          return (
            <li key={thread.id} aria-current={metadata.signedId === signedId ? "page" : undefined}>
              <button onClick={() => open(metadata.signedId)}>{metadata.title}</button>
              <button title="Rename" onClick={() => rename(metadata)}>✎</button>
              <button title="Delete" onClick={() => remove(metadata)}>✕</button>
            </li>
          );
        })}
      </ul>
      {hasMore && <button onClick={loadMore}>More</button>}
    </nav>
  );
}
