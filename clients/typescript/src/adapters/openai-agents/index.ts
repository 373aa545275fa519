/** A session for the OpenAI Agents SDK. */

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
import { threadIdFor } from "../../thread-id.js";
import type { Client } from "../../types/client.js";
import type { Operation } from "../../types/operation.js";
import type { ClientSource } from "../../types/options.js";
import type { Thread } from "../../types/thread.js";
import { digestOf } from "../names.js";
import { canonical, decode, encode, type Item } from "./items.js";

const MAX_OPERATIONS = 1_000;
const ITEMS = "items";

type State = { items: Item[] } & { [transaction: `tx:${string}`]: string };

export type ThreadkeepSessionOptions = ClientSource & {
  /** Default: a new random ID. */
  sessionId?: string | undefined;
  /** Sets the sessions of this application apart. Default: "openai-agents". */
  prefix?: string | undefined;
  /** How long a session lives after its last use. Default: 30 days. */
  ttlSeconds?: number | undefined;
  /** Keeps only the newest items. */
  maxItems?: number | undefined;
};

export class ThreadkeepSession
  implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession
{
  readonly #sessionId: string;
  readonly #thread: Promise<Thread<State>>;
  readonly #ttlSeconds: number;
  readonly #maxItems: number | undefined;

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
    const thread = await this.#thread;
    const writes: Promise<unknown>[] = [];
    for (let at = 0; at < operations.length; at += MAX_OPERATIONS) {
      writes.push(thread.merge(operations.slice(at, at + MAX_OPERATIONS), { ttlSeconds: this.#ttlSeconds }));
    }
    await Promise.all(writes);
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    try {
      const { results } = await (await this.#thread).merge([{ op: "pop", key: ITEMS }], { ifMatch: "*" });
      const [item] = results[0]!.values as Item[];
      return item && decode(item);
    } catch (error) {
      if (error instanceof VersionMismatchError) return undefined; // there is no such session yet
      throw error;
    }
  }

  async clearSession(): Promise<void> {
    await (await this.#thread).clear({ ttlSeconds: this.#ttlSeconds });
  }

  /** Replaces the first function call with an ID, and removes its duplicates. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    if (!mutations.length) return;
    await (await this.#thread).update(ITEMS, ({ items = [] }) => {
      let next = items;
      for (const { type, callId, replacement } of mutations) {
        if (type !== "replace_function_call") continue;
        const isCall = (item: Item) => item["type"] === "function_call" && item["callId"] === callId;
        const first = next.findIndex(isCall);
        next = next.flatMap((item, at) => (at === first ? encode(replacement) : isCall(item) ? [] : item));
      }
      return canonical(next) === canonical(items) ? undefined : [{ op: "set", key: ITEMS, value: next }];
    });
  }

  /** Changes the history in one step, once for each `operationId`. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (typeof operationId !== "string" || !operationId.trim()) {
      throw new TypeError("A session history transaction needs an operationId.");
    }
    const { expected, added } = partsOf(transaction);
    const key = `tx:${await digestOf(operationId)}` as const;
    const digest = await digestOf(canonical([transaction.type, expected, added]));
    const keys = transaction.type === "append_items" ? [key] : [key, ITEMS as never];
    const ttlSeconds = this.#ttlSeconds;
    await (await this.#thread).update(
      keys,
      (state: Partial<State>) => {
        const applied = state[key];
        if (applied === digest) return undefined;
        if (applied !== undefined) {
          throw new Error("This session history operation was applied before, with a different transaction.");
        }
        return [...this.#replaceSuffix(state.items ?? [], expected, added), { op: "set", key, value: digest }];
      },
      { ttlSeconds },
    );
  }

  #replaceSuffix(items: readonly Item[], expected: readonly Item[], added: readonly Item[]): Operation<State>[] {
    const start = items.length - expected.length;
    if (expected.length && (start < 0 || canonical(items.slice(start)) !== canonical(expected))) {
      throw new Error("The history of the session no longer ends with the items that are to be replaced.");
    }
    const pops: Operation<State>[] = [];
    for (let left = expected.length; left > 0; left -= MAX_OPERATIONS) {
      pops.push({ op: "pop", key: ITEMS, count: Math.min(left, MAX_OPERATIONS) });
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
