/** Compile-time tests. They are never run. */

import { createClient, type ErrorCode, NOT_DONE, type Operation, type StandardSchemaV1, type Thread, type ThreadEvent } from "threadkeep";
import { useThread } from "threadkeep/react";
import { z } from "zod";

interface Message {
  role: "user" | "assistant";
  content: string;
}

interface Chat {
  messages: Message[];
  turns: number;
  title?: string;
  note?: string | null;
}

interface Mail {
  id: string;
}

declare function send(key: string): Promise<Mail>;
declare function find(key: string): Promise<Mail | undefined>;

const client = createClient({ baseUrl: new URL("http://127.0.0.1:8080"), headers: { a: "b" } });
const chat: Thread<Chat> = client.current<Chat>();

export async function typed(): Promise<void> {
  await chat.push("messages", { role: "user", content: "Hello" }, { maxRecords: 50 });
  // @ts-expect-error: not a message
  await chat.push("messages", { role: "user" });
  // @ts-expect-error: not an array
  await chat.push("turns", 1);
  // @ts-expect-error: an unknown key
  await chat.push("message", { role: "user", content: "Hello" });
  await chat.increment("turns");
  await chat.increment("turns", 2n);
  // @ts-expect-error: not a number
  await chat.increment("title");
  await chat.set("title", "Trip");
  await chat.set("note", null);
  // @ts-expect-error: an optional key is deleted, not set to undefined
  await chat.set("title", undefined);
  // @ts-expect-error: a value of another type
  await chat.set("turns", "seven");
  // @ts-expect-error: an unknown key
  await chat.delete("other");
  // @ts-expect-error: history writes cannot be conditional
  await chat.history.clear({ life: "0123456789abcdef" });

  const title: string | undefined = await chat.get("title");
  const messages: Message[] | undefined = await chat.get("messages", { tail: 20 });
  // @ts-expect-error: it may be missing
  const certain: Message[] = await chat.get("messages");
  const { state, version } = await chat.read({ keys: ["messages", "title"] });
  const first: Message | undefined = state.messages?.[0];
  // @ts-expect-error: an unknown key
  await chat.read({ keys: ["other"] });

  const operations: Operation<Chat>[] = [
    { op: "push", key: "messages", value: { role: "user", content: "Hello" }, maxRecords: 50 },
    { op: "set", key: "title", value: "Trip" },
    { op: "increment", key: "turns", by: 2 },
    { op: "pop", key: "messages" },
    { op: "delete", key: "note" },
    { op: "append", id: "turn-1", value: { any: ["json"] } },
    { op: "settle", effect: "call_1", result: { sent: true } },
    { op: "settle", effect: "call_1", fence: "fence_1", error: "no such address" },
    // @ts-expect-error: neither a result nor an error
    { op: "settle", effect: "call_1" },
    { op: "clear" },
    // @ts-expect-error: a value of another type
    { op: "set", key: "title", value: 7 },
    // @ts-expect-error: not an array
    { op: "push", key: "turns", value: 7 },
    // @ts-expect-error: not a number
    { op: "increment", key: "messages" },
  ];
  const { results } = await chat.merge(operations);
  const value: number | bigint | undefined = results[2]?.value;

  await chat.update("turns", ({ turns = 0 }) => (turns < 10 ? [{ op: "set", key: "turns", value: turns + 1 }] : undefined));
  await chat.update(["turns", "title"], async ({ turns, title }) => [{ op: "set", key: "title", value: `${title} ${turns}` }]);
  // @ts-expect-error: a key that was not read
  await chat.update("turns", ({ title }) => [{ op: "set", key: "title", value: `${title}` }]);
  await chat.patch({ title: null, messages: [] });
  // @ts-expect-error: an unknown key
  await chat.patch({ other: 1 });
  await chat.replace({ messages: [], turns: 0 });
  // @ts-expect-error: a key is missing
  await chat.replace({ messages: [] });
  await client.threads.create<Chat>({ state: { turns: 0 } });
  // @ts-expect-error: a value of another type
  await client.threads.create<Chat>({ state: { turns: "seven" } });
  await using turn = await chat.turn({ exclusive: true });
  await turn.thread.increment("turns");
  const mail: Mail = await turn.effect("call_1", "send_mail", { to: "ada@example.com" }, async ({ key }) => send(key), {
    check: async (key) => (await find(key)) ?? NOT_DONE,
  });
  const plain: number = await turn.effect("call_2", "add", [1, 2], ({ attempt }) => attempt, { idempotent: true, retry: true });
  // @ts-expect-error: a result of another type
  await turn.effect("call_3", "add", [1, 2], () => 3, { check: () => "three" });
  void [title, messages, certain, version, first, value, mail, plain];
}

export async function untyped(): Promise<void> {
  const thread = client.current();
  await thread.set("anything", { a: [1, "b", null] });
  await thread.push("list", 1);
  await thread.increment("count");
  const any = await thread.get("anything");
  any.a.b.c;
  const created = await client.threads.create({ state: { a: 1 } });
  await created.set("b", 2);
}

type Alias = { list: number[]; big: bigint };

export async function aliases(): Promise<void> {
  const thread = client.thread<Alias>("thrd_x");
  await thread.push("list", 1);
  await thread.increment("big", 1n);
  // @ts-expect-error: a value of another type
  await thread.push("list", "one");
}

export async function schemas(): Promise<void> {
  const thread = client.current({ schema: z.object({ count: z.number().default(0), tags: z.array(z.string()) }) });
  const { state } = await thread.read();
  const count: number | undefined = state.count;
  await thread.push("tags", "a");
  // @ts-expect-error: a value of another type
  await thread.push("tags", 1);
  const schema: StandardSchemaV1<unknown, Chat> = {} as StandardSchemaV1<unknown, Chat>;
  await client.current({ schema }).push("messages", { role: "user", content: "Hello" });
  void count;
}

export function events(event: ThreadEvent): string {
  switch (event.type) {
    case "thread.created":
    case "thread.updated":
      return event.keys.join();
    case "thread.destroyed":
      return event.data.reason ?? "";
    case "thread.rotated":
      return event.newThreadId;
    case "history.appended":
      return String(event.firstSeq + event.lastSeq);
    case "reset":
      // @ts-expect-error: a reset is not about one change
      return event.keys.join();
  }
}

export function codes(code: ErrorCode): boolean {
  const future: ErrorCode = "a_code_of_tomorrow";
  return code === "version_mismatch" || code === future;
}

export function Hook(): string {
  const { state, push, set } = useThread<Chat>({ initialState: { turns: 0 }, suspense: true });
  void push("messages", { role: "user", content: "Hello" });
  // @ts-expect-error: not a message
  void push("messages", "Hello");
  // @ts-expect-error: a value of another type
  void set("turns", "seven");
  // @ts-expect-error: a value of another type
  useThread<Chat>({ initialState: { turns: "seven" } });
  return state.title ?? "";
}
