/** Reads the newest message of a thread for its row in the list. Does not extend the thread's lifetime. */

import { asProblem } from "../../api/problem.js";
import { peekState, peekTail } from "../../api/state.js";
import { getHistory } from "../../api/threads.js";
import type { Thread } from "../../api/types.js";
import { conversationsIn, ifMostlyMessages, mainKey } from "../../chat/conversations.js";
import { type Preview, previewOf } from "../../chat/preview.js";
import { Gate } from "../../gate.js";

const CONCURRENCY_MAX = 2;
/** Number of messages to read. More than one, because the newest message may have no text. */
const MESSAGES = 4;
/** Maximum size of a state to read as a whole. If a state is larger, only the key `messages` is read. */
const STATE_MAX_BYTES = 65_536;
const CACHED_MAX = 2_000;

interface CachedPreview {
  preview: Preview | undefined;
  version: string;
  /** Sequence number of the list refresh that read the preview from the history. Undefined if read from the state. */
  refresh: number | undefined;
}

const gate = new Gate(CONCURRENCY_MAX);
const cache = new Map<string, CachedPreview>();

export const forgetPreviews = () => cache.clear();

const versionOf = ({ created_at, version }: Thread) => `${created_at} ${version}`;

export function cachedPreview(thread: Thread, refresh: number): Pick<CachedPreview, "preview"> | undefined {
  const found = cache.get(thread.id);
  const isCurrent = found?.version === versionOf(thread) && (found.refresh ?? refresh) === refresh;
  return isCurrent ? found : undefined;
}

export async function readPreview(thread: Thread, refresh: number, signal: AbortSignal): Promise<Preview | undefined> {
  const cached = cachedPreview(thread, refresh);
  if (cached) return cached.preview;
  return gate.run(signal, async () => {
    const messages = await messagesOfState(thread, signal);
    const preview = previewOf(messages ?? (await messagesOfHistory(thread, signal)) ?? []);
    if (cache.size >= CACHED_MAX) forgetPreviews();
    cache.set(thread.id, { preview, version: versionOf(thread), refresh: messages ? undefined : refresh });
    return preview;
  });
}

async function messagesOfState({ id, keys, size_bytes }: Thread, signal: AbortSignal): Promise<string[] | undefined> {
  if (keys === 0) return undefined;
  if (size_bytes <= STATE_MAX_BYTES) {
    const chats = conversationsIn(await peekState(id, signal));
    return chats.get(mainKey([...chats.keys()]) ?? "")?.slice(-MESSAGES);
  }
  try {
    return ifMostlyMessages(await peekTail(id, "messages", MESSAGES, signal));
  } catch (error) {
    if (/^(key_not_found|not_an_array)$/.test(asProblem(error).code)) return undefined;
    throw error;
  }
}

async function messagesOfHistory({ id }: Thread, signal: AbortSignal): Promise<string[] | undefined> {
  const { items } = await getHistory(`/v1/threads/${id}/history`, undefined, MESSAGES, { peek: true, signal });
  return ifMostlyMessages(items.map(({ value }) => value));
}
