import { errorOf } from "../http/errors.js";
import { randomPause, sleep } from "../http/wait.js";
import type { KeyValueBatch, NewEntry } from "../types/kv.js";

const ATTEMPTS = 4;
const BATCH_ENTRIES = 100;

export type PlainEntry = Omit<NewEntry, "ifAbsent">;

/** Stores entries in batches. No batch is larger than `limit`, unless it consists of a single larger entry. */
export async function putAll(
  kv: KeyValueBatch,
  entries: Iterable<PlainEntry>,
  sizeOf: (entry: PlainEntry) => number,
  limit: number,
): Promise<void> {
  let batch: PlainEntry[] = [];
  let batchSize = 0;
  const flush = async () => {
    const [first] = batch;
    if (!first) return;
    const { key, body, ...o } = first;
    if (batch.length === 1) await kv.put(key, body, o);
    else await putEntries(kv, batch);
    batch = [];
    batchSize = 0;
  };
  for (const entry of entries) {
    const size = sizeOf(entry);
    if (batchSize + size > limit || batch.length === BATCH_ENTRIES) await flush();
    batch.push(entry);
    batchSize += size;
  }
  await flush();
}

/** Stores entries in one request. Resends temporary failures. Throws if an entry fails permanently or too often. */
async function putEntries(kv: KeyValueBatch, entries: readonly PlainEntry[]): Promise<void> {
  let remaining = entries;
  for (let tries = 1; ; tries++) {
    const outcomes = await kv.putMany(remaining);
    const failed = outcomes.filter(({ ok }) => !ok);
    const [first] = failed;
    if (!first) return;
    const isFinal = failed.some(({ status }) => status !== 429 && status !== 503);
    if (isFinal || tries === ATTEMPTS) throw errorOf(first.status ?? 500, new Headers(), JSON.stringify(first));
    remaining = remaining.filter((_, index) => !outcomes[index]!.ok);
    await sleep(randomPause(50, tries, Infinity));
  }
}
