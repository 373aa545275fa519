import type {
  AgentInputItem,
  SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession,
  SessionHistoryTransaction,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents";
import { clientOf } from "../../client.js";
import { VersionMismatchError } from "../../http/errors.js";
import { Queue } from "../../thread/queue.js";
import { threadIdFor } from "../../thread-id.js";
import type { Client } from "../../types/client.js";
import type { Operation } from "../../types/operation.js";
import type { ClientSource } from "../../types/options.js";
import type { Thread } from "../../types/thread.js";
import { MAX_OPERATIONS, mergeAll } from "../merges.js";
import { digestOf } from "../names.js";
import { canonical, decode, encode, type Item } from "./items.js";

const ITEMS = "items";

type State = { items: Item[] } & { [transaction: `tx:${string}`]: string };

export type ThreadkeepSessionOptions = ClientSource & {
  /** Default: a random ID. */
  sessionId?: string | undefined;
  /** Namespace for the thread IDs. Use a different prefix for each application. Default: "openai-agents". */
  prefix?: string | undefined;
  /** Idle lifetime of a session. Default: 30 days. */
  ttlSeconds?: number | undefined;
  /** Maximum number of items to keep. When the limit is exceeded, the oldest items are dropped. */
  maxItems?: number | undefined;
};

/** Stores a session of the OpenAI Agents SDK. */
export class ThreadkeepSession
  implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession
{
  readonly #sessionId: string;
  readonly #thread: Promise<Thread<State>>;
  readonly #ttlSeconds: number;
  readonly #maxItems: number | undefined;
  /** Runs calls one at a time, because other calls must not interrupt a call that needs several writes. */
  readonly #queue = new Queue();

  constructor(options: ThreadkeepSessionOptions = {}) {
    const client: Client = clientOf(options);
    this.#sessionId = options.sessionId ?? crypto.randomUUID();
    this.#ttlSeconds = options.ttlSeconds ?? 2_592_000;
    this.#maxItems = options.maxItems;
    const id = threadIdFor(this.#sessionId, options.prefix ?? "openai-agents");
    this.#thread = id.then((name) => client.thread<State>(name));
  }

  async getSessionId(): Promise<string> {
    return this.#sessionId;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    const tail = limit !== undefined && Number.isFinite(limit) ? Math.ceil(limit) : undefined;
    const items = await (await this.#thread).get(ITEMS, { tail });
    return (items ?? []).map(decode);
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    const operations = this.#pushes(items.map(encode));
    const ttlSeconds = this.#ttlSeconds;
    await this.#write((thread) => mergeAll(thread, operations, () => ({ ttlSeconds })));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    try {
      const { results } = await this.#write((thread) => thread.merge([{ op: "pop", key: ITEMS }], { ifMatch: "*" }));
      const [item] = results[0]!.values as Item[];
      return item && decode(item);
    } catch (error) {
      if (error instanceof VersionMismatchError) return undefined; // the session does not exist yet
      throw error;
    }
  }

  async clearSession(): Promise<void> {
    await this.#write((thread) => thread.clear({ ttlSeconds: this.#ttlSeconds }));
  }

  /** Per mutation, replaces the first function call with the same `callId`, and removes later calls with that ID. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    if (!mutations.length) return;
    const change = ({ items = [] }: Partial<State>): Operation<State>[] | undefined => {
      let next = items;
      for (const { type, callId, replacement } of mutations) {
        if (type !== "replace_function_call") continue;
        const isCall = (item: Item) => item["type"] === "function_call" && item["callId"] === callId;
        const first = next.findIndex(isCall);
        next = next.flatMap((item, at) => (at === first ? encode(replacement) : isCall(item) ? [] : item));
      }
      return canonical(next) === canonical(items) ? undefined : [{ op: "set", key: ITEMS, value: next }];
    };
    await this.#write((thread) => thread.update(ITEMS, change));
  }

  /** Changes the history atomically, and only once per `operationId`. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (typeof operationId !== "string" || !operationId.trim()) {
      throw new TypeError("A session history transaction needs an operationId.");
    }
    const { expected, added } = partsOf(transaction);
    const key = `tx:${await digestOf(operationId)}` as const;
    const digest = await digestOf(canonical([transaction.type, expected, added]));
    const keys = transaction.type === "append_items" ? [key] : [key, ITEMS as never];
    const change = (state: Partial<State>): Operation<State>[] | undefined => {
      const applied = state[key];
      if (applied === digest) return undefined;
      if (applied !== undefined) {
        throw new Error("This session history operation was applied before, with a different transaction.");
      }
      return [...this.#replaceSuffix(state.items ?? [], expected, added), { op: "set", key, value: digest }];
    };
    await this.#write((thread) => thread.update(keys, change, { ttlSeconds: this.#ttlSeconds }));
  }

  #write<T>(task: (thread: Thread<State>) => Promise<T>): Promise<T> {
    return this.#queue.run(async () => task(await this.#thread));
  }

  #replaceSuffix(items: readonly Item[], expected: readonly Item[], added: readonly Item[]): Operation<State>[] {
    const start = items.length - expected.length;
    if (expected.length && (start < 0 || canonical(items.slice(start)) !== canonical(expected))) {
      throw new Error("The history of the session no longer ends with the items that are to be replaced.");
    }
    const pops: Operation<State>[] = [];
    for (let remaining = expected.length; remaining > 0; remaining -= MAX_OPERATIONS) {
      pops.push({ op: "pop", key: ITEMS, count: Math.min(remaining, MAX_OPERATIONS) });
    }
    return [...pops, ...this.#pushes(added)];
  }

  #pushes(items: readonly Item[]): Operation<State>[] {
    const maxRecords = this.#maxItems;
    return items.map((value) => ({ op: "push", key: ITEMS, value, maxRecords }));
  }
}

function partsOf(transaction: SessionHistoryTransaction): { expected: Item[]; added: Item[] } {
  if (transaction.type === "append_items") return { expected: [], added: transaction.items.map(encode) };
  if (transaction.type === "replace_suffix") {
    return { expected: transaction.expectedSuffix.map(encode), added: transaction.replacement.map(encode) };
  }
  throw new TypeError("This type of session history transaction is not known.");
}
