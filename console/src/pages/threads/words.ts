/** Reads the newest message of a thread for its row in the list. Does not extend the thread's lifetime. */

import { asProblem } from "../../api/problem.js";
import { peekState, peekTail } from "../../api/state.js";
import { getHistory } from "../../api/threads.js";
import type { Thread } from "../../api/types.js";
import { conversationsIn, mainOf, messagesIn } from "../../chat/conversations.js";
import { type Words, lastWords } from "../../chat/last-words.js";
import { Gate } from "../../gate.js";

const CONCURRENCY_MAX = 2;
/** Number of messages to read. More than one, because the newest message may have no text. */
const MESSAGES = 4;
/** Maximum size of a state to read as a whole. If a state is larger, only the key `messages` is read. */
const STATE_MAX_BYTES = 65_536;
const THREADS_KEPT = 2_000;

interface CachedWords {
  words: Words | undefined;
  version: string;
  /** Number of the list refresh in which the words were read from the history. Undefined for words from the state. */
  list: number | undefined;
}

const gate = new Gate(CONCURRENCY_MAX);
const kept = new Map<string, CachedWords>();

export const forgetWords = () => kept.clear();

const versionOf = ({ created_at, version }: Thread) => `${created_at} ${version}`;

export function knownWords(thread: Thread, list: number): Pick<CachedWords, "words"> | undefined {
  const found = kept.get(thread.id);
  const isRight = found?.version === versionOf(thread) && (found.list ?? list) === list;
  return isRight ? found : undefined;
}

export async function readWords(thread: Thread, list: number, signal: AbortSignal): Promise<Words | undefined> {
  const known = knownWords(thread, list);
  if (known) return known.words;
  return gate.run(signal, async () => {
    const said = await messagesOfState(thread, signal);
    const words = lastWords(said ?? (await messagesOfHistory(thread, signal)) ?? []);
    if (kept.size >= THREADS_KEPT) forgetWords();
    kept.set(thread.id, { words, version: versionOf(thread), list: said ? undefined : list });
    return words;
  });
}

async function messagesOfState({ id, keys, size_bytes }: Thread, signal: AbortSignal): Promise<string[] | undefined> {
  if (keys === 0) return undefined;
  if (size_bytes <= STATE_MAX_BYTES) {
    const chats = conversationsIn(await peekState(id, signal));
    return chats.get(mainOf([...chats.keys()]) ?? "")?.slice(-MESSAGES);
  }
  try {
    return messagesIn(await peekTail(id, "messages", MESSAGES, signal));
  } catch (error) {
    if (/^(key_not_found|not_an_array)$/.test(asProblem(error).code)) return undefined;
    throw error;
  }
}

async function messagesOfHistory({ id }: Thread, signal: AbortSignal): Promise<string[] | undefined> {
  const { items } = await getHistory(`/v1/threads/${id}/history`, undefined, MESSAGES, { peek: true, signal });
  return messagesIn(items.map(({ value }) => value));
}
