import type { History, HistoryConfig, State, StateData } from "@inngest/agent-kit";
import { createAdmin } from "../../admin/index.js";
import { clientOf } from "../../client.js";
import { ForbiddenError, ReusedError, ThreadkeepError } from "../../http/errors.js";
import { idempotencyKey } from "../../thread/idempotency-key.js";
import type { Json } from "../../types/json.js";
import type { ClientSource } from "../../types/options.js";
import type { Thread } from "../../types/thread.js";
import { digestOf, threadIdOf } from "../names.js";
import { changes, fill, initialState, textsOf } from "./data.js";
import { agentItem, isSame, resultsOf, type StoredValue, userItem } from "./items.js";

export type HistoryOptions<T extends StateData> = ClientSource & {
  /** Namespace for the thread IDs. Use a different prefix for each application. Default: "agentkit". */
  prefix?: string | undefined;
  /** Idle lifetime of a conversation. Default: 30 days. */
  ttlSeconds?: number | undefined;
  /** Returns the owner of the conversation. */
  owner?: ((state: State<T>) => string | undefined) | undefined;
  /** Returns additional metadata for a new thread. */
  metadata?: ((state: State<T>) => { [key: string]: Json } | undefined) | undefined;
};

interface Run {
  /** Unchanged when Inngest repeats a step. */
  id: string;
  before: Map<string, string>;
}

type Step = History.Context<StateData>["step"];

/** Creates a history for networks and agents of AgentKit. */
export function createHistory<T extends StateData>(options: HistoryOptions<T> = {}): HistoryConfig<T> {
  const client = clientOf(options);
  const { prefix = "agentkit", ttlSeconds = 2_592_000, owner, metadata } = options;
  const runs = new WeakMap<State<T>, Run>();
  const threadOf = async (name: string): Promise<Thread> => client.thread(await threadIdOf(name, prefix));

  const create = async (name: string, state: State<T>) => {
    const id = await threadIdOf(name, prefix);
    const ownerId = owner?.(state);
    const extra = metadata?.(state);
    const agentkit = { ...(extra?.["agentkit"] as object | undefined), id: name };
    const init = { id, ttlSeconds, metadata: { ...extra, agentkit }, state: initialState(state) };
    try {
      await client.threads.create({ ...init, ...(ownerId === undefined ? {} : { owner: ownerId }) });
    } catch (error) {
      if (!(error instanceof ThreadkeepError && error.code === "thread_exists")) throw error;
      await adopt(client.thread(id), ownerId, init.metadata);
    }
  };

  const adopt = async (thread: Thread, ownerId: string | undefined, initialMetadata: { [key: string]: Json }) => {
    const { exists, owner: current, metadata: existing } = await thread.info();
    if (!exists) return;
    if (ownerId !== undefined && current !== ownerId) {
      if (current) throw new ForbiddenError("not_the_owner", "not_the_owner: This thread has another owner.", { status: 403 });
      await createAdmin({ client }).owners.assign(thread.id!, ownerId);
    }
    if (!existing["agentkit"]) await thread.configure({ metadata: initialMetadata });
  };

  return {
    async createThread({ state, step }) {
      const { threadId, run } = await inStep(step, "threadkeep-create", async () => {
        const name = state.threadId ?? crypto.randomUUID();
        await create(name, state);
        return { threadId: name, run: idempotencyKey() };
      });
      runs.set(state, { id: run, before: textsOf(state) });
      return { threadId };
    },

    async appendUserMessage({ state, threadId, userMessage, step }) {
      const thread = await threadOf(nameOf(threadId, state));
      const item = await userItem(userMessage);
      // the key omits the message's ID and time, because a repeated step sends a new time and may send a new ID
      const run = runs.get(state)?.id;
      const key = run && (await digestOf(item.value.content, "user " + run));
      await inStep(step, "threadkeep-user", () =>
        unlessRepeated(thread, [item], () => thread.history.append(item, { ttlSeconds, idempotencyKey: key }), key),
      );
    },

    async get({ state, threadId, step }) {
      const thread = await threadOf(nameOf(threadId, state));
      const loaded = await inStep(step, "threadkeep-load", async () => {
        const [snapshot, values] = await Promise.all([thread.read(), valuesOf(thread)]);
        return { state: snapshot.state, values };
      });
      fill(state, loaded.state);
      runs.set(state, { id: runs.get(state)?.id ?? idempotencyKey(), before: textsOf(state) });
      return resultsOf(loaded.values);
    },

    async appendResults({ state, threadId, newResults, step }) {
      const after = textsOf(state);
      const run = runs.get(state);
      const items = await Promise.all(newResults.map(agentItem));
      const operations = [
        ...items.map(({ id, value }) => ({ op: "append", id, value: value as unknown as Json }) as const),
        ...changes(run?.before ?? new Map(), after),
      ];
      if (!operations.length) return;
      const thread = await threadOf(nameOf(threadId, state));
      const key = items.length ? await digestOf(items.map(({ id }) => id).join(), "results") : undefined;
      await inStep(step, "threadkeep-results", () =>
        unlessRepeated(thread, items, () => thread.merge(operations, { ttlSeconds, idempotencyKey: key })),
      );
      if (run) run.before = after;
    },
  };
}

const nameOf = (threadId: string | undefined, state: State<any>): string => {
  const name = threadId ?? state.threadId;
  if (!name) throw new TypeError("The state has no thread ID.");
  return name;
};

async function inStep<R>(step: Step, name: string, task: () => Promise<R>): Promise<R> {
  return step ? ((await step.run(name, async () => (await task()) ?? null)) as R) : task();
}

async function valuesOf(thread: Thread): Promise<StoredValue[]> {
  const values: StoredValue[] = [];
  for await (const { value } of thread.history.items()) values.push(value as StoredValue);
  return values;
}

/**
 * Appends items, unless an earlier attempt at the same step has appended them. A repeated item has the same ID. If its
 * time differs, the server reports a reused ID, so this function ignores that error if the content is the same.
 */
async function unlessRepeated(
  thread: Thread,
  items: { id: string; value: StoredValue }[],
  append: () => Promise<unknown>,
  key?: string,
): Promise<void> {
  try {
    await append();
  } catch (error) {
    if (!(error instanceof ReusedError)) throw error;
    if (key && error.code === "idempotency_key_reused") return;
    const missing = new Map(items.map(({ id, value }) => [id, value]));
    let before: number | undefined;
    do {
      const page = await thread.history.page({ order: "desc", limit: 100, before });
      for (const { id, value } of page.items) {
        const expected = missing.get(id);
        if (expected && !isSame(expected, value as StoredValue)) throw error;
        missing.delete(id);
      }
      before = page.next;
    } while (missing.size && before !== undefined);
    if (missing.size) throw error;
  }
}
