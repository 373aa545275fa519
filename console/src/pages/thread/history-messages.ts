import { getHistory } from "../../api/threads.js";
import { isMessage } from "../../chat/messages.js";
import { type Loaded, useLoad } from "../../load.js";
import type { ThreadView } from "./view.js";

/** Items of a history that a conversation shows. */
const ITEMS = 500;

/** The newest messages of a history, if it is a conversation. */
export interface HistoryMessages {
  messages: readonly string[] | undefined;
}

/** Reads one page of a thread's history while it is wanted, and again after each change. Most items of a conversation are messages. */
export function useHistoryMessages(view: ThreadView, isWanted: boolean): Loaded<HistoryMessages | undefined> {
  return useLoad(
    async (signal) => {
      if (!isWanted) return undefined;
      const { items } = await getHistory(`/v1/threads/${view.id}/history`, undefined, ITEMS, undefined, signal);
      const values = items.map(({ value }) => value);
      return { messages: 2 * values.filter(isMessage).length > values.length ? values : undefined };
    },
    [view, view.historyChanges.value, isWanted],
  );
}
