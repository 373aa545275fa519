import { signal } from "@preact/signals";

/** The time, once a second. */
export const now = signal(Date.now());

setInterval(() => (now.value = Date.now()), 1_000);
