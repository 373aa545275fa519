// Tests the chat store with streams of the published AI SDK, versions 5, 6 and 7, and `once` with version 7.

import { randomUUID } from "node:crypto";
import { generateText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { EffectFailed, NOT_DONE, threadIdFor } from "threadkeep";
import { createChatStore, once } from "threadkeep/ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { client, options, unique } from "../support/servers.mjs";

const store = createChatStore(options());
const replica = createChatStore(options(1));

const user = (text, id = randomUUID()) => ({ id, role: "user", parts: [{ type: "text", text }] });
const textsOf = (messages) => messages.map(({ parts }) => parts.filter(({ type }) => type === "text").map(({ text }) => text).join());

describe.each([["ai", "onEnd"], ["ai6", "onFinish"], ["ai5", "onFinish"]])("%s", async (name, onEnd) => {
  const { createUIMessageStream, readUIMessageStream, validateUIMessages } = await import(name);

  /** Streams and saves an answer, like a route for `useChat`. */
  async function answer(chat, text, during = () => {}) {
    const stream = createUIMessageStream({
      originalMessages: chat.messages,
      generateId: randomUUID,
      onError: (error) => error.code ?? error.message,
      async execute({ writer }) {
        writer.write({ type: "start" });
        writer.write({ type: "text-start", id: "1" });
        for (const letter of text) writer.write({ type: "text-delta", id: "1", delta: letter });
        await during();
        writer.write({ type: "text-end", id: "1" });
      },
      [onEnd]: ({ messages }) => chat.save(messages),
    });
    let last;
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
    return last;
  }

  it("stores messages, and loads them in a valid format", async () => {
    const id = unique("chat");
    const chat = await store.open(id);
    expect(chat.messages).toEqual([]);
    await chat.append(user("Hi"));
    await answer(chat, "Hello");

    const later = await replica.open(id);
    await later.append(user("Bye"));
    const last = await answer(later, "See you");

    const messages = await validateUIMessages({ messages: await store.load(id) });
    expect(textsOf(messages)).toEqual(["Hi", "Hello", "Bye", "See you"]);
    expect(messages.at(-1)).toEqual(JSON.parse(JSON.stringify(last)));
    expect(later.messages).toEqual(messages);
  });

  it("keeps the messages of two tabs that write concurrently", async () => {
    const id = unique("tabs");
    await (await store.open(id)).append(user("first"));
    const tabs = await Promise.all([store.open(id), replica.open(id)]);

    await Promise.all(
      tabs.map(async (tab, number) => {
        await tab.append(user(`question ${number}`));
        await answer(tab, `answer ${number}`);
      }),
    );

    const texts = textsOf(await store.load(id));
    expect(texts[0]).toBe("first");
    expect(texts.toSorted()).toEqual(["answer 0", "answer 1", "first", "question 0", "question 1"]);
    for (const number of [0, 1]) expect(texts.indexOf(`question ${number}`)).toBeLessThan(texts.indexOf(`answer ${number}`));
    expect(textsOf(await tabs[0].reload())).toEqual(texts);
  });

  it("keeps another tab's message when an answer is regenerated", async () => {
    const id = unique("regenerate");
    const chat = await store.open(id);
    await chat.append(user("Hi"));
    await answer(chat, "bad");
    await (await replica.open(id)).append(user("from another tab"));

    await chat.save(chat.messages.slice(0, -1));
    await answer(chat, "good");

    expect(textsOf(await store.load(id))).toEqual(["Hi", "from another tab", "good"]);
  });

  it("rejects a save of a chat that was deleted during an answer", async () => {
    const id = unique("deleted");
    const chat = await store.open(id);
    await chat.append(user("Hi"));

    const late = answer(chat, "late", () => replica.delete(id));

    await expect(late).rejects.toThrow("thread_destroyed");
    expect(await store.load(id)).toEqual([]);
  });
});

it("updates a message without moving it, such as the approval of a tool", async () => {
  const id = unique("approval");
  const part = { type: "tool-pay", toolCallId: "c1", state: "approval-requested", input: { sum: 3 }, approval: { id: "a1" } };
  const asking = { id: "m2", role: "assistant", parts: [part] };
  const chat = await store.open(id);
  await chat.append(user("Pay", "m1"), asking, user("Well?", "m3"));

  const approved = { ...asking, parts: [{ ...part, state: "approval-responded", approval: { id: "a1", approved: true } }] };
  await chat.save([chat.messages[0], approved, chat.messages[2]]);

  expect((await store.load(id)).map((message) => message.id)).toEqual(["m1", "m2", "m3"]);
  expect((await store.load(id))[1]).toEqual(approved);
});

it("sends only the differences", async () => {
  const id = unique("differences");
  const first = user("x".repeat(50_000));
  await store.save({ chatId: id, messages: [first] });
  const sizes = [];
  const counting = createChatStore(
    options(0, {
      fetch(url, init) {
        sizes.push(init.body?.length ?? 0);
        return fetch(url, init);
      },
    }),
  );

  await counting.save({ chatId: id, base: [first], messages: [first, user("short")] });
  await counting.save({ chatId: id, base: [first], messages: [first] });

  expect(sizes).toHaveLength(1);
  expect(sizes[0]).toBeLessThan(500);
});

it("adds only new messages and deletes none if a save has no base", async () => {
  const id = unique("base");
  const [a, b, c] = ["a", "b", "c"].map((text) => user(text));
  await store.save({ chatId: id, messages: [a, b] });
  await store.save({ chatId: id, messages: [a, b] });
  await store.save({ chatId: id, messages: [c] });

  expect(await store.load(id)).toEqual([a, b, c]);
});

it("loads a message once if two tabs pushed it, and omits deleted messages", async () => {
  const id = unique("twice");
  const message = user("Hi");
  const [one, two] = [await store.open(id), await replica.open(id)];
  await one.append(message);
  await two.append(message);
  await two.append(user("more"));
  await two.save([message]);

  expect(await store.load(id)).toEqual([message]);
});

it("stores messages whose IDs are not valid keys", async () => {
  const id = unique("ids");
  const messages = [".", "a/b", "ü".repeat(400), "a\u0000b", "__proto__", "order"].map((name) => user(name, name));
  await store.save({ chatId: id, messages });

  expect(await store.load(id)).toEqual(messages);
});

it("rejects messages with the same ID or no ID, and changes nothing", async () => {
  const chat = await store.open(unique("same"));
  await chat.append(user("Hi", "1"));

  await expect(chat.save([user("a", "2"), user("b", "2")])).rejects.toThrow("same ID");
  await expect(chat.append(user("no ID", ""))).rejects.toThrow("generateId");
  await chat.append(user("Hi again", "1"));

  expect(textsOf(await chat.reload())).toEqual(["Hi again"]);
});

it("saves in call order", async () => {
  const chat = await store.open(unique("calls"));
  await Promise.all(["a", "b", "c", "d"].map((text) => chat.append(user(text))));
  expect(textsOf(await chat.reload())).toEqual(["a", "b", "c", "d"]);
});

it("rejects a save of an ended chat, even if the server has no record of its end", async () => {
  const id = unique("ended");
  const chat = await store.open(id);
  // tests a chat that the server remembers as ended, and then a chat that the server does not know
  await store.save({ chatId: id, messages: [user("Hi")] });
  await chat.reload();
  const thread = client().thread(await threadIdFor(id, "ai"));
  await thread.rotate();
  await expect(chat.append(user("more"))).rejects.toMatchObject({ code: "thread_destroyed" });

  const late = store.save({ chatId: unique("never"), base: [user("Hi")], messages: [user("Hi")] });
  await expect(late).rejects.toMatchObject({ code: "thread_destroyed" });
});

it("uses a thread ID unchanged, and sets a TTL of thirty days", async () => {
  const id = await threadIdFor(randomUUID());
  await store.save({ chatId: id, messages: [user("Hi")] });
  expect(await client().thread(id).info()).toMatchObject({ exists: true, ttlSeconds: 2_592_000 });
});

it("keeps the ID of the active stream until that stream is cleared", async () => {
  const id = unique("streams");
  expect(await store.getActiveStream(id)).toBeNull();
  expect(await store.clearActiveStream(id, "s1")).toBe(false);
  await store.setActiveStream(id, "s1");
  await store.setActiveStream(id, "s2");

  expect(await store.clearActiveStream(id, "s1")).toBe(false);
  expect(await store.getActiveStream(id)).toBe("s2");
  expect(await replica.clearActiveStream(id, "s2")).toBe(true);
  expect(await store.getActiveStream(id)).toBeNull();
});

describe("once", () => {
  const inputSchema = z.object({ to: z.string() });
  const ada = { to: "ada" };

  async function inTurn(id, act) {
    const turn = await client().thread(id).turn({ waitSeconds: 30 });
    try {
      return await act(turn);
    } finally {
      await turn.release();
    }
  }

  const newThread = async () => (await client().threads.create()).id;

  it("runs a model's call once, and returns its recorded output", async () => {
    const id = await newThread();
    const call = { type: "tool-call", toolCallId: "call_1", toolName: "send", input: '{"to":"ada"}' };
    const doGenerate = async () => ({
      content: [call],
      finishReason: { unified: "tool-calls" },
      usage: { inputTokens: {}, outputTokens: {} },
      warnings: [],
    });
    let runs = 0;
    const tools = { send: tool({ inputSchema, execute: async ({ to }) => ({ to, runs: ++runs }) }) };
    const answer = (turn) => generateText({ model: new MockLanguageModelV4({ doGenerate }), prompt: "Send it", tools: once(tools, turn) });

    for (const _ of [1, 2]) {
      const { toolResults } = await inTurn(id, answer);
      expect(toolResults.map(({ output }) => output)).toEqual([{ to: "ada", runs: 1 }]);
    }
    expect(await client().thread(id).effects.get("call_1")).toMatchObject({ tool: "send", state: "done" });
  });

  it("passes on the key, and keeps tools without `execute` and the other members", async () => {
    await inTurn(await newThread(), async (turn) => {
      const ask = tool({ inputSchema });
      const send = tool({ description: "Sends", inputSchema, execute: async (_, { effect, messages }) => [effect.key, messages] });
      const wrapped = once({ ask, send }, turn);

      expect(wrapped.ask).toBe(ask);
      expect(wrapped.send).toMatchObject({ description: "Sends", inputSchema });
      const output = await wrapped.send.execute(ada, { toolCallId: "call_1", messages: [] });
      expect(output).toEqual([(await turn.thread.effects.get("call_1")).idempotencyKey, []]);
    });
  });

  it("records the last part of a streamed output", async () => {
    const id = await newThread();
    async function* execute() {
      yield "sending";
      yield "sent";
    }
    const send = (turn) => once({ send: tool({ inputSchema, execute }) }, turn).send.execute(ada, { toolCallId: "call_1" });

    expect([await inTurn(id, send), await inTurn(id, send)]).toEqual(["sent", "sent"]);
  });

  it("reports a recorded error with its text", async () => {
    const id = await newThread();
    for (const [toolCallId, error, message] of [["call_1", "no address", "no address"], ["call_2", { code: 7 }, '{"code":7}']]) {
      const execute = () => Promise.reject(new EffectFailed(error));
      const send = (turn) => once({ send: tool({ inputSchema, execute }) }, turn).send.execute(ada, { toolCallId });
      for (const _ of [1, 2]) await expect(inTurn(id, send)).rejects.toThrow(new Error(message));
    }
  });

  it("runs a call in doubt only if the options allow it", async () => {
    const id = await newThread();
    let isDown = true;
    const execute = async () => {
      if (isDown) throw new Error("down");
      return "sent";
    };
    const send = (o) => (turn) => once({ send: tool({ inputSchema, execute }) }, turn, { send: o }).send.execute(ada, { toolCallId: "call_1" });

    await expect(inTurn(id, send())).rejects.toThrow("down");
    isDown = false;
    await expect(inTurn(id, send())).rejects.toMatchObject({ code: "effect_in_doubt" });
    expect(await inTurn(id, send({ check: () => NOT_DONE }))).toBe("sent");
  });
});
