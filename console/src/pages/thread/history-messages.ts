import { getHistory } from "../../api/threads.js";
import { ifMostlyMessages } from "../../chat/conversations.js";
import { type Loaded, useLoad } from "../../load.js";
import type { ThreadView } from "./view.js";

const ITEMS = 500;

export interface HistoryMessages {
  messages: readonly string[] | undefined;
}

/** While `isWanted`, reads a page of a thread's history, and reads the page again whenever the history changes. */
export function useHistoryMessages(view: ThreadView, isWanted: boolean): Loaded<HistoryMessages | undefined> {
  return useLoad(
    async (signal) => {
      if (!isWanted) return undefined;
      const { items } = await getHistory(`/v1/threads/${view.id}/history`, undefined, ITEMS, { signal });
      return { messages: ifMostlyMessages(items.map(({ value }) => value)) };
    },
    [view, view.historyChanges.value, isWanted],
  );
}
