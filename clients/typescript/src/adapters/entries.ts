import { errorOf } from "../http/errors.js";
import { sleep } from "../http/wait.js";
import type { KeyValueBatch, NewEntry } from "../types/kv.js";

const ATTEMPTS = 4;

/** Puts entries in one request, and those again that the store could not put. Rejects unless it has put all of them. */
export async function putEntries(kv: KeyValueBatch, entries: readonly NewEntry[]): Promise<void> {
  let left = entries;
  for (let tries = 1; ; tries++) {
    const outcomes = await kv.putMany(left);
    const failed = outcomes.filter(({ ok }) => !ok);
    const [first] = failed;
    if (!first) return;
    const isFinal = failed.some(({ status }) => status !== 429 && status !== 503);
    if (isFinal || tries === ATTEMPTS) throw errorOf(first.status ?? 500, new Headers(), JSON.stringify(first));
    left = left.filter((_, index) => !outcomes[index]!.ok);
    await sleep(Math.random() * 50 * 2 ** tries);
  }
}
