"use client";

import { useMemo, useSyncExternalStore } from "react";
import { checkDefined } from "../defined.js";
import type { Client } from "../types/client.js";
import { useClient } from "./context.js";
import { type Listing, LOADING, type ListSnapshot, ListStore } from "./list-store.js";

export interface UseThreads extends ListSnapshot {
  loadMore(): Promise<void>;
  refresh(): Promise<void>;
}

/** Returns a user's list of conversations. */
export function useThreads(o: Listing & { client?: Client | undefined } = {}): UseThreads {
  checkDefined(o, "owner");
  const client = useClient(o.client);
  const { owner, limit, order } = o;
  const ownerFilter = owner === undefined ? {} : { owner };
  const store = useMemo(() => new ListStore(client, { ...ownerFilter, limit, order }), [client, owner, limit, order]);
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, () => LOADING);
  return useMemo(
    () => ({ ...snapshot, loadMore: store.loadMore, refresh: store.refresh }),
    [snapshot, store],
  );
}
