import { effect } from "@preact/signals";
import { isReachable } from "../../api/request.js";
import { now } from "../../clock.js";
import type { ThreadView } from "./view.js";

/** Reads of other clients move a thread's end without an event, so the page looks at it that often, */
const LOOK_MS = 30_000;
/** and that often while it is near. */
const LOOK_NEAR_MS = 2_000;
const NEAR_MS = 10_000;

/** Keeps the end of a thread up to date until the returned function is called. A hidden tab does not look. */
export function keepTime(view: ThreadView): () => void {
  let last = Date.now();
  return effect(() => {
    const ends = view.thread.value?.expires_at;
    const time = now.value;
    if (view.phase.value !== "live" || !ends || document.hidden || !isReachable.value) return;
    const isNear = Date.parse(ends) - time < NEAR_MS;
    if (time - last < (isNear ? LOOK_NEAR_MS : LOOK_MS)) return;
    last = time;
    void view.refresh({ isQuiet: true });
  });
}
