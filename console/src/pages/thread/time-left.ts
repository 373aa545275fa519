import { effect } from "@preact/signals";
import { isReachable } from "../../api/request.js";
import { now } from "../../clock.js";
import type { ThreadView } from "./view.js";

/** Polling interval. Polling is needed because reads by other clients extend the thread's lifetime without an event. */
const POLL_MS = 30_000;
const POLL_NEAR_MS = 2_000;
const NEAR_MS = 10_000;

/** Polls a thread's expiry until the returned function is called. A hidden tab does not poll. */
export function keepTime(view: ThreadView): () => void {
  let last = Date.now();
  return effect(() => {
    const ends = view.thread.value?.expires_at;
    const time = now.value;
    if (view.phase.value !== "live" || !ends || document.hidden || !isReachable.value) return;
    const isNear = Date.parse(ends) - time < NEAR_MS;
    if (time - last < (isNear ? POLL_NEAR_MS : POLL_MS)) return;
    last = time;
    void view.refresh({ isQuiet: true });
  });
}
