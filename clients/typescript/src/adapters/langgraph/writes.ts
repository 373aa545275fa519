import { type CheckpointPendingWrite, type PendingWrite, type SerializerProtocol, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { ThreadkeepError, VersionMismatchError } from "../../http/errors.js";
import { randomPause, sleep } from "../../http/wait.js";
import type { KeyValueBatch } from "../../types/kv.js";
import { putBlobs, readBlobs } from "./blobs.js";
import { taskKey, valueKey, writesKey } from "./keys.js";
import { dump, type Dumped, pack, type Packed, unpack } from "./values.js";

/** Maximum size of a value that is stored in its task's entry. A larger value gets its own entry. */
const MAX_INLINE_BYTES = 16_384;
const MAX_PAUSE_MS = 500;
const MAX_ATTEMPTS = 100;

/** The writes of one task. They share an entry, so that readers see all writes of a `putWrites` call or none. */
interface TaskEntry {
  task: string;
  writes: StoredWrite[];
}

interface StoredWrite {
  /** Index of the write. Negative for special channels, such as errors. */
  place: number;
  channel: string;
  path: string;
  value: Packed | { blob: string };
}

export interface CheckpointRef {
  ns: string;
  id: string;
}

export async function putWrites(
  serde: SerializerProtocol,
  kv: KeyValueBatch,
  { ns, id }: CheckpointRef,
  writes: readonly PendingWrite[],
  task: string,
  path: string,
): Promise<void> {
  const key = await taskKey(ns, id, task);
  const newWrites: StoredWrite[] = [];
  const large = new Map<string, Dumped>();
  for (const [index, [channel, value]] of writes.entries()) {
    const dumped = await dump(serde, value);
    const isLarge = dumped.bytes.length > MAX_INLINE_BYTES;
    const blob = isLarge ? await valueKey(ns, id, task, crypto.randomUUID()) : "";
    if (isLarge) large.set(blob, dumped);
    newWrites.push({ place: WRITES_IDX_MAP[channel] ?? index, channel, path, value: isLarge ? { blob } : pack(dumped) });
  }
  await putBlobs(kv, large);

  if ((await kv.put(key, text(task, combine([], newWrites)), { ifAbsent: true })).ok) return;
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const entry = await kv.get(key);
    const stored = entry ? (entry.json() as TaskEntry).writes : [];
    const combined = combine(stored, newWrites);
    if (JSON.stringify(combined) === JSON.stringify(stored)) return;
    try {
      const condition = entry ? { ifMatch: entry.etag } : { ifAbsent: true };
      if ((await kv.put(key, text(task, combined), condition)).ok) return;
    } catch (error) {
      if (!(error instanceof VersionMismatchError)) throw error;
    }
    await sleep(randomPause(5, tries, MAX_PAUSE_MS));
  }
  throw new ThreadkeepError("version_mismatch", `Other writers were faster ${MAX_ATTEMPTS} times.`);
}

const text = (task: string, writes: StoredWrite[]): string => JSON.stringify({ task, writes } satisfies TaskEntry);

/** Merges writes by index. The first write wins at a nonnegative index, and the last write at a negative index. */
function combine(stored: readonly StoredWrite[], newWrites: readonly StoredWrite[]): StoredWrite[] {
  const byIndex = new Map(stored.map((write) => [write.place, write]));
  for (const write of newWrites) {
    if (write.place < 0 || !byIndex.has(write.place)) byIndex.set(write.place, write);
  }
  return [...byIndex.values()];
}

/** Returns the writes to a checkpoint in the order in which a run applies them. */
export async function readWrites(
  serde: SerializerProtocol,
  kv: KeyValueBatch,
  { ns, id }: CheckpointRef,
): Promise<CheckpointPendingWrite[]> {
  const prefix = await writesKey(ns, id);
  const loaded: (StoredWrite & { task: string })[] = [];
  let cursor: string | undefined;
  do {
    const page = await kv.entries({ prefix, cursor, limit: 100 });
    for (const entry of page.entries) {
      const { task, writes } = entry.json() as TaskEntry;
      loaded.push(...writes.map((write) => ({ ...write, task })));
    }
    cursor = page.next;
  } while (cursor);
  loaded.sort((a, b) => byCodePoint(a.path, b.path) || byCodePoint(a.task, b.task) || a.place - b.place);
  const blobs = loaded.flatMap(({ value }) => ("blob" in value ? [value.blob] : []));
  const large = await readBlobs(serde, kv, blobs);
  return Promise.all(
    loaded.map(async ({ task, channel, value }): Promise<CheckpointPendingWrite> => {
      return [task, channel, "blob" in value ? large.get(value.blob) : await unpack(serde, value)];
    }),
  );
}

/** Replaces `compareWritesSortKeys`, which does not exist in older versions of LangGraph. */
function byCodePoint(a: string, b: string): number {
  const [x, y] = [[...a], [...b]];
  const index = x.findIndex((letter, i) => letter !== y[i]);
  return index < 0 ? x.length - y.length : (x[index]!.codePointAt(0) ?? 0) - (y[index]?.codePointAt(0) ?? -1);
}
