import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import { type Admin, createAdmin } from "../../admin/index.js";
import type { KeyValueBatch } from "../../types/kv.js";
import type { ClientSource } from "../../types/options.js";
import { digestOf } from "../names.js";
import { putBlobs, readBlobs } from "./blobs.js";
import { blobKey, checkpointKey, checkpointsKey } from "./keys.js";
import { dump, type Dumped, pack, type Packed, unpack } from "./values.js";
import { putWrites, readWrites } from "./writes.js";

type RunnableConfig = Parameters<BaseCheckpointSaver["getTuple"]>[0];

const PAGE = 100;
const CONCURRENCY = 8;

export type ThreadkeepSaverOptions = ClientSource & {
  /** Prefix of the namespaces. Use a different prefix for each application. Default: "lg". */
  prefix?: string | undefined;
  /** Idle lifetime of a thread's checkpoints. By default, checkpoints do not expire. */
  idleTtlSeconds?: number | undefined;
};

interface StoredCheckpoint {
  thread: string;
  ns: string;
  id: string;
  parent?: string | undefined;
  checkpoint: Packed;
  metadata: Packed;
}

/** Stores checkpoints as entries, in one namespace per thread. */
export class ThreadkeepSaver extends BaseCheckpointSaver {
  readonly #admin: Admin;
  readonly #prefix: string;
  readonly #idleTtlSeconds: number | undefined;
  /** When this process last set each namespace's idle TTL, in ms since the epoch. Oldest first. */
  readonly #configured = new Map<string, number>();

  constructor(options: ThreadkeepSaverOptions = {}, serde?: SerializerProtocol) {
    super(serde);
    this.#admin = createAdmin(options);
    this.#prefix = options.prefix ?? "lg";
    this.#idleTtlSeconds = options.idleTtlSeconds;
  }

  /** Adds a random fraction to the next version, so that branches of a thread do not share stored values. */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(current ?? 0) + 1 + Math.random();
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id: thread, checkpoint_ns: ns = "" } = config.configurable ?? {};
    if (thread === undefined) return undefined;
    const kv = this.#admin.kv(await this.#namespace(thread));
    const stored = await this.#find(kv, ns, getCheckpointId(config));
    return stored && this.#complete(kv, stored);
  }

  override async *list(
    config: RunnableConfig,
    { before, limit, filter }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } = config.configurable ?? {};
    const beforeId: string | undefined = before?.configurable?.["checkpoint_id"];
    let remaining = limit ?? Number.POSITIVE_INFINITY;
    for await (const namespace of thread === undefined ? this.#namespaces() : [await this.#namespace(thread)]) {
      const kv = this.#admin.kv(namespace);
      const prefix = await checkpointsKey(ns);
      let cursor: string | undefined;
      do {
        if (remaining <= 0) return;
        const page = await kv.entries({ prefix, cursor, limit: filter || beforeId || id ? PAGE : Math.min(PAGE, remaining) });
        const matches: StoredCheckpoint[] = [];
        for (const entry of page.entries) {
          const stored = entry.json() as StoredCheckpoint;
          if (id && stored.id !== id) continue;
          if (beforeId !== undefined && stored.id >= beforeId) continue;
          if (filter && !matchesFilter(await unpack(this.serde, stored.metadata), filter)) continue;
          if (matches.length < remaining) matches.push(stored);
        }
        for (let start = 0; start < matches.length; start += CONCURRENCY) {
          yield* await Promise.all(matches.slice(start, start + CONCURRENCY).map((stored) => this.#complete(kv, stored)));
        }
        remaining -= matches.length;
        cursor = page.next;
      } while (cursor);
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id: thread, checkpoint_ns: ns = "", checkpoint_id: parent } = config.configurable ?? {};
    if (thread === undefined) throw new Error("A checkpoint needs `configurable.thread_id`.");
    const namespace = await this.#namespace(thread);
    const kv = this.#admin.kv(namespace);
    await this.#setIdleTtl(namespace, kv);

    const { channel_values, ...rest } = checkpoint;
    const values = new Map<string, Dumped>();
    for (const [channel, version] of Object.entries(newVersions)) {
      if (!Object.hasOwn(channel_values, channel)) continue;
      values.set(await blobKey(ns, channel, version), await dump(this.serde, channel_values[channel]));
    }
    await putBlobs(kv, values);

    const stored: StoredCheckpoint = {
      thread,
      ns,
      id: checkpoint.id,
      parent,
      checkpoint: pack(await dump(this.serde, rest)),
      metadata: pack(await dump(this.serde, metadata)),
    };
    await kv.put(await checkpointKey(ns, checkpoint.id), JSON.stringify(stored), { contentType: "application/json" });
    return configOf(thread, ns, checkpoint.id);
  }

  override async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = "",
  ): Promise<void> {
    const { thread_id: thread, checkpoint_ns: ns = "", checkpoint_id: id } = config.configurable ?? {};
    if (thread === undefined) throw new Error("Writes need `configurable.thread_id`.");
    if (id === undefined) throw new Error("Writes need `configurable.checkpoint_id`.");
    if (!writes.length) return;
    const kv = this.#admin.kv(await this.#namespace(thread));
    await putWrites(this.serde, kv, { ns, id }, writes, taskId, taskPath);
  }

  override async deleteThread(threadId: string): Promise<void> {
    const namespace = await this.#namespace(threadId);
    this.#configured.delete(namespace);
    await this.#admin.kv(namespace).clear();
  }

  async #find(kv: KeyValueBatch, ns: string, id: string): Promise<StoredCheckpoint | undefined> {
    if (id) return (await kv.get(await checkpointKey(ns, id)))?.json();
    const { entries } = await kv.entries({ prefix: await checkpointsKey(ns), limit: 1 });
    return entries[0]?.json();
  }

  async #complete(kv: KeyValueBatch, stored: StoredCheckpoint): Promise<CheckpointTuple> {
    const { thread, ns, id, parent } = stored;
    const checkpoint = (await unpack(this.serde, stored.checkpoint)) as Checkpoint;
    const channels = Object.entries(checkpoint.channel_versions ?? {});
    const keys = await Promise.all(channels.map(([channel, version]) => blobKey(ns, channel, version)));
    const isOldFormat = checkpoint.v < 4 && parent !== undefined;
    const [values, pendingWrites, parentWrites] = await Promise.all([
      readBlobs(this.serde, kv, keys),
      readWrites(this.serde, kv, { ns, id }),
      isOldFormat ? readWrites(this.serde, kv, { ns, id: parent }) : [],
    ]);
    const found = channels.flatMap(([channel], index) =>
      values.has(keys[index]!) ? [[channel, values.get(keys[index]!)] as const] : [],
    );
    checkpoint.channel_values = Object.fromEntries(found);
    if (isOldFormat) this.#migrate(checkpoint, parentWrites.filter(([, channel]) => channel === TASKS).map(([, , send]) => send));
    return {
      config: configOf(thread, ns, id),
      checkpoint,
      metadata: (await unpack(this.serde, stored.metadata)) as CheckpointMetadata,
      ...(parent === undefined ? {} : { parentConfig: configOf(thread, ns, parent) }),
      pendingWrites,
    };
  }

  /** Upgrades a checkpoint with a version below 4. Adds `sends`, which old versions stored as writes to the parent. */
  #migrate(checkpoint: Checkpoint, sends: unknown[]): void {
    const versions = Object.values(checkpoint.channel_versions ?? {});
    checkpoint.channel_values[TASKS] = sends;
    checkpoint.channel_versions = {
      ...checkpoint.channel_versions,
      [TASKS]: versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined),
    };
  }

  /** Sets the namespace's idle TTL. Repeats this after half the TTL, because the setting expires with the namespace. */
  async #setIdleTtl(namespace: string, kv: KeyValueBatch): Promise<void> {
    const idleTtlSeconds = this.#idleTtlSeconds;
    if (idleTtlSeconds === undefined) return;
    const now = Date.now();
    const isRecent = (time: number) => now - time < idleTtlSeconds * 500;
    for (const [name, time] of this.#configured) {
      if (isRecent(time)) break;
      this.#configured.delete(name);
    }
    if (this.#configured.has(namespace)) return;
    await kv.configure({ idleTtlSeconds });
    this.#configured.set(namespace, now);
  }

  async #namespace(thread: string): Promise<string> {
    return `${this.#prefix}.${await digestOf(thread, this.#prefix)}`;
  }

  async *#namespaces(): AsyncGenerator<string> {
    let cursor: string | undefined;
    do {
      const page = await this.#admin.namespaces({ cursor, limit: PAGE });
      for (const { namespace } of page.items) {
        if (namespace.startsWith(this.#prefix + ".")) yield namespace;
      }
      cursor = page.next;
    } while (cursor);
  }
}

const configOf = (thread: string, ns: string, id: string): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id },
});

function matchesFilter(metadata: { [key: string]: unknown }, filter: { [key: string]: unknown }): boolean {
  return Object.entries(filter).every(([key, value]) => JSON.stringify(metadata[key]) === JSON.stringify(value));
}
