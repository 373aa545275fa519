import { signal } from "@preact/signals";

export const now = signal(Date.now());

setInterval(() => (now.value = Date.now()), 1_000);
