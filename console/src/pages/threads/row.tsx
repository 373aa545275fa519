import { useRef, useState } from "preact/hooks";
import type { Thread } from "../../api/types.js";
import type { Preview } from "../../chat/preview.js";
import { count, shortId } from "../../format.js";
import { hrefOfThread } from "../../ids.js";
import { membersOf } from "../../json/text.js";
import { excerpt, readableExcerpt } from "../../json/visible.js";
import { go } from "../../route.js";
import { titleOf } from "../../title.js";
import { Bar } from "../../ui/bar.js";
import { Copy } from "../../ui/copy.js";
import { Ago, Left } from "../../ui/time.js";
import type { RowProperties } from "../../ui/virtual-list.js";
import { useWhileShown } from "../../ui/while-shown.js";
import { cachedPreview, readPreview } from "./previews.js";

export function ThreadRow({ thread, refresh, properties }: { thread: Thread; refresh: number; properties: RowProperties }) {
  const { isActive: _, ...attributes } = properties;
  const title = titleOf(thread.metadata);
  return (
    <div role="listitem" {...attributes} tabIndex={-1} class="thread-row" onKeyDown={(event) => {
      if (event.key === "Enter" && event.target === event.currentTarget) go(hrefOfThread(thread.id));
    }}>
      <a class="thread-link" href={hrefOfThread(thread.id)}>
        {title && <bdi class="thread-title ellipsis">{title}</bdi>}
        <span class="ellipsis">
          <code class={title ? "dim" : ""}>{shortId(thread.id)}</code> <bdi>{thread.owner ? excerpt(thread.owner, 60) : ""}</bdi>
        </span>
      </a>
      <span class="thread-about">
        <MessagePreview thread={thread} refresh={refresh} />
        <span class="thread-meta ellipsis dim">{summary(thread.metadata, title !== undefined)}</span>
      </span>
      <Bar value={thread.size_bytes} max={thread.limit_bytes} name="Size of the state" />
      <span class="thread-numbers">
        <span title="Version">v{count(thread.version)}</span>
        <span title="Keys">{count(thread.keys)} {thread.keys === 1 ? "key" : "keys"}</span>
      </span>
      <span class="thread-times">
        <Ago at={thread.updated_at} />
        <span class="dim">
          <Left until={thread.expires_at} /> left
        </span>
      </span>
      <Copy text={thread.id} name="id" />
    </div>
  );
}

/** Shows the beginning of a conversation's newest message. Reads the message when the row comes into view. */
function MessagePreview({ thread, refresh }: { thread: Thread; refresh: number }) {
  const ref = useRef<HTMLSpanElement>(null);
  const [preview, setPreview] = useState<Preview | undefined>(() => cachedPreview(thread, refresh)?.preview);
  const read = (signal: AbortSignal) => {
    const show = (preview: Preview | undefined) => {
      if (!signal.aborted) setPreview(preview);
    };
    // ignores failures, because the row can be shown without the message
    readPreview(thread, refresh, signal).then(show, () => {});
  };
  useWhileShown(ref, read, [thread, refresh]);
  return (
    <span ref={ref} class="thread-words ellipsis">
      {preview && (
        <>
          <bdi class="dim">{preview.role}</bdi> <bdi>{preview.text}</bdi>
        </>
      )}
    </span>
  );
}

function summary(metadata: string, hasTitle: boolean): string {
  const members = [...membersOf(metadata)].filter(([key]) => !hasTitle || key !== "title").slice(0, 4);
  return members.map(([key, value]) => `${excerpt(key, 30)}: ${readableExcerpt(value, 60)}`).join("  ");
}
