"use client";

import { useMemo, useRef, useState, useSyncExternalStore } from "react";
import { checkDefined } from "../defined.js";
import type { ThreadkeepError } from "../http/errors.js";
import type { Client } from "../types/client.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";
import type { AnyState } from "../types/state.js";
import type { Thread } from "../types/thread.js";
import { useClient } from "./context.js";
import { type FailedWrite, loadingSnapshot, type ThreadStatus } from "./snapshot.js";
import type { Actions } from "./thread-store.js";
import { forgetFailed, storeOf } from "./stores.js";

export interface UseThreadOptions<S> {
  /** Default: the caller's own thread. */
  id?: string | undefined;
  signedId?: string | undefined;
  /** Default: the client of the `ThreadProvider`. */
  client?: Client | undefined;
  /** State to show during server rendering, and until the first read is complete. */
  initialState?: Partial<S> | undefined;
  schema?: StandardSchemaV1<unknown, S> | undefined;
  /** Suspends until the state is known. If the first read fails, throws the error to the error boundary. */
  suspense?: boolean | undefined;
}

export interface UseThread<S extends object>
  extends Pick<Thread<S>, "set" | "push" | "increment" | "delete" | "clear" | "merge">, Pick<Actions, "refresh" | "destroy"> {
  /** The server's state with this page's pending writes applied. */
  state: Partial<S>;
  version: number;
  id: string | undefined;
  /** Number of writes whose response has not arrived. */
  pending: number;
  status: ThreadStatus;
  /** Why the last write, read or stream failed. */
  error: ThreadkeepError | undefined;
  /** Writes that were abandoned ten seconds after their first attempt, oldest first. */
  failed: readonly FailedWrite[];
}

/** Subscribes to a thread, and returns its live state. */
export function useThread<S extends object = AnyState>(o: UseThreadOptions<S> = {}): UseThread<S> {
  checkDefined(o, "id", "signedId");
  const client = useClient(o.client);
  const { id, signedId } = o;
  const store = useMemo(() => storeOf(client, o), [client, id, signedId]);
  const [initial] = useState(() => loadingSnapshot(o.initialState));
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, () => initial);
  const wasRendered = useRef(false);
  if (snapshot === initial) wasRendered.current = true; // during server rendering or hydration
  if (o.suspense && !wasRendered.current && !store.isLoaded && snapshot.status !== "destroyed") {
    if (snapshot.error) {
      forgetFailed(client, o, store);
      throw snapshot.error;
    }
    throw store.ready();
  }
  return useMemo(() => ({ ...snapshot, ...store.actions }), [snapshot, store]) as unknown as UseThread<S>;
}
