import type { UIMessage } from "ai";
import { clientOf } from "../../client.js";
import { ThreadDestroyedError, VersionMismatchError } from "../../http/errors.js";
import { Queue } from "../../thread/queue.js";
import type { Operation } from "../../types/operation.js";
import type { ClientSource } from "../../types/options.js";
import type { Thread } from "../../types/thread.js";
import { mergeAll } from "../merges.js";
import { threadIdOf } from "../names.js";
import { changesOf, messagesOf, type Texts, textsOf } from "./messages.js";

export { once, type OnceOptions } from "./once.js";

const ACTIVE = "activeStream";

export type ChatStoreOptions = ClientSource & {
  /** Namespace for the thread IDs. Use a different prefix for each application. Default: "ai". */
  prefix?: string | undefined;
  /** Idle lifetime of a chat. Default: 30 days. */
  ttlSeconds?: number | undefined;
};

/** A loaded chat that tracks changes. */
export interface OpenChat<M extends UIMessage> {
  readonly id: string;
  /** The messages as of the last load or save. */
  readonly messages: M[];
  append(...messages: M[]): Promise<void>;
  /** Saves the differences between `this.messages` and `messages`. Keeps messages that other callers added. */
  save(messages: readonly M[]): Promise<void>;
  reload(): Promise<M[]>;
}

export interface ChatStore<M extends UIMessage> {
  open(chatId: string): Promise<OpenChat<M>>;
  load(chatId: string): Promise<M[]>;
  /** Saves the differences between `base` and `messages`. Without `base`, does not delete messages. */
  save(o: { chatId: string; messages: readonly M[]; base?: readonly M[] | undefined }): Promise<void>;
  delete(chatId: string): Promise<void>;
  setActiveStream(chatId: string, streamId: string): Promise<void>;
  getActiveStream(chatId: string): Promise<string | null>;
  /** Returns false if another stream is active. */
  clearActiveStream(chatId: string, streamId: string): Promise<boolean>;
}

/** Creates a store of chats for the Vercel AI SDK. */
export function createChatStore<M extends UIMessage = UIMessage>(options: ChatStoreOptions = {}): ChatStore<M> {
  const client = clientOf(options);
  const { prefix = "ai", ttlSeconds = 2_592_000 } = options;
  const threadOf = async (chatId: string): Promise<Thread> => client.thread(await threadIdOf(chatId, prefix));

  const read = async (thread: Thread) => {
    const { state, version } = await thread.read();
    return { messages: messagesOf<M>(state), exists: version > 0 };
  };

  const write = async (thread: Thread, operations: readonly Operation[], exists: boolean) => {
    try {
      await mergeAll(thread, operations, (isFirst) => (exists || !isFirst ? { ifMatch: "*" } : { ttlSeconds }));
    } catch (error) {
      if (!(error instanceof VersionMismatchError)) throw error;
      throw new ThreadDestroyedError("thread_destroyed", "thread_destroyed: This chat has ended.", { cause: error });
    }
  };

  const open = async (chatId: string): Promise<OpenChat<M>> => {
    const thread = await threadOf(chatId);
    let { messages, exists } = await read(thread);
    let savedTexts = textsOf(messages);
    // runs saves one at a time, because each save compares its messages with those of the previous save
    const queue = new Queue();
    const saveAll = async (next: readonly M[]) => {
      const texts = textsOf(next);
      const operations = await changesOf(savedTexts, texts);
      if (!operations.length) return;
      await write(thread, operations, exists);
      savedTexts = texts;
      exists = true;
      messages = parsed(texts);
    };
    return {
      id: chatId,
      get messages() {
        return messages;
      },
      append: (...added) => queue.run(() => saveAll(joined(messages, added))),
      save: (next) => queue.run(() => saveAll(next)),
      reload: () =>
        queue.run(async () => {
          ({ messages, exists } = await read(thread));
          savedTexts = textsOf(messages);
          return messages;
        }),
    };
  };

  return {
    open,

    load: async (chatId) => (await read(await threadOf(chatId))).messages,

    async save({ chatId, messages, base }) {
      const thread = await threadOf(chatId);
      const texts = textsOf(messages);
      if (base) return write(thread, await changesOf(textsOf(base), texts), base.length > 0);
      const stored = await read(thread);
      const operations = await changesOf(textsOf(stored.messages), texts);
      await write(thread, operations.filter(({ op }) => op !== "delete"), stored.exists);
    },

    async delete(chatId) {
      await (await threadOf(chatId)).destroy();
    },

    async setActiveStream(chatId, streamId) {
      await (await threadOf(chatId)).set(ACTIVE, streamId, { ttlSeconds });
    },

    getActiveStream: async (chatId) => (await (await threadOf(chatId)).get(ACTIVE)) ?? null,

    async clearActiveStream(chatId, streamId) {
      const receipt = await (await threadOf(chatId)).update(ACTIVE, (state) =>
        state[ACTIVE] === streamId ? [{ op: "delete", key: ACTIVE }] : undefined,
      );
      return receipt !== undefined;
    },
  };
}

/** Appends `added` to `messages`. An added message replaces the existing message with the same ID. */
function joined<M extends UIMessage>(messages: readonly M[], added: readonly M[]): M[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  for (const message of added) byId.set(message.id, message);
  return [...byId.values()];
}

const parsed = <M>(texts: Texts): M[] => [...texts.values()].map((text) => JSON.parse(text) as M);
