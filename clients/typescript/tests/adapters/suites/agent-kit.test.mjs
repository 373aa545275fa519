import { randomUUID } from "node:crypto";
import { createAgent, createNetwork, createState, createTool } from "@inngest/agent-kit";
import { createHistory } from "threadkeep/agentkit";
import { threadIdFor } from "threadkeep";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { startModel } from "../support/model.mjs";
import { inTwoProcesses } from "../support/processes.mjs";
import { client, isLong, options, unique } from "../support/servers.mjs";

const stops = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

async function networkOf(answer, { history = {}, agent: agentOptions = {} } = {}) {
  const { model, requests, stop } = await startModel(answer);
  stops.push(stop);
  const agent = createAgent({ name: "writer", system: "You write.", ...agentOptions });
  const network = createNetwork({
    name: "test",
    agents: [agent],
    defaultModel: model,
    router: ({ callCount }) => (callCount ? undefined : agent),
    history: createHistory({ ...options(), ...history }),
  });
  return { network, requests };
}

const threadOf = async (name) => client().thread(await threadIdFor(name, "agentkit"));

async function valuesOf(name) {
  const values = [];
  for await (const { value } of (await threadOf(name)).history.items()) values.push(value);
  return values;
}

const onFinish = (change) => ({
  lifecycle: {
    onFinish({ network, result }) {
      change(network.state);
      return result;
    },
  },
});

it("continues a conversation, and ends the prompt with the current message", async () => {
  const { network } = await networkOf(() => "Hello!");
  const { state } = await network.run("Hi");
  expect(state.threadId).toMatch(/^[0-9a-f-]{36}$/);

  const { network: other, requests } = await networkOf(() => "Goodbye!");
  const next = await other.run("Bye", { state: createState({}, { threadId: state.threadId }) });

  const contents = requests[0].map(({ role, content }) => [role, content]);
  expect(contents.slice(-3)).toEqual([["user", "Hi"], ["assistant", "Hello!"], ["user", "Bye"]]);
  expect(next.state.results.map((result) => result.agentName)).toEqual(["user", "writer", "user", "writer"]);
  expect(next.state.results.every((result) => result.createdAt instanceof Date)).toBe(true);
  expect(await valuesOf(state.threadId)).toMatchObject([
    { kind: "user", content: "Hi" },
    { kind: "agent", result: { agentName: "writer", output: [{ content: "Hello!" }] } },
    { kind: "user", content: "Bye" },
    { kind: "agent", result: { agentName: "writer", output: [{ content: "Goodbye!" }] } },
  ]);
});

it("keeps tool calls and their results", async () => {
  const tool = createTool({
    name: "add",
    parameters: z.object({ a: z.number(), b: z.number() }),
    handler: ({ a, b }) => ({ sum: a + b }),
  });
  const calling = { name: "add", arguments: '{"a":1,"b":2}' };
  const { network } = await networkOf(() => calling, { agent: { tools: [tool] } });
  network.maxIter = 1;
  const threadId = unique("tools");
  // the agent calls the tool only once, because an agent in a network does not iterate
  const { state } = await network.run("Add", { state: createState({}, { threadId }) });

  const { network: other } = await networkOf(() => "3");
  const { state: next } = await other.run("So?", { state: createState({}, { threadId }) });

  expect(state.results.at(-1).toolCalls).toHaveLength(1);
  expect(next.results[1].export()).toEqual(state.results.at(-1).export());
});

it("fills data and kv, and writes only the values that the run changed", async () => {
  const threadId = unique("data");
  const first = onFinish(({ data, kv }) => {
    data.plan = { name: "free" };
    data.visits = 1;
    kv.set("note", "a");
  });
  await (await networkOf(() => "ok", { agent: first })).network.run("1", { state: createState({ visits: 0 }, { threadId }) });

  const seen = {};
  const second = onFinish(({ data, kv }) => {
    Object.assign(seen, { plan: data.plan, visits: data.visits, note: kv.get("note") });
    data.plan = { name: "pro" };
    kv.delete("note");
  });
  const { network } = await networkOf(() => "ok", { agent: second });
  const running = network.run("2", { state: createState({ visits: 0 }, { threadId }) });
  await (await threadOf(threadId)).set("data.other", "of another run");
  await running;

  expect(seen).toEqual({ plan: { name: "free" }, visits: 1, note: "a" });
  expect((await (await threadOf(threadId)).read()).state).toEqual({
    "data.other": "of another run",
    "data.plan": { name: "pro" },
    "data.visits": 1,
  });
});

it("keeps the user's message when the model fails", async () => {
  const { network } = await networkOf(() => undefined);
  const threadId = unique("failure");

  await expect(network.run("Hi", { state: createState({}, { threadId }) })).rejects.toThrow();

  expect(await valuesOf(threadId)).toMatchObject([{ kind: "user", content: "Hi" }]);
});

it("assigns the owner to the thread, so that the owner's list contains it", async () => {
  const owner = `user-${randomUUID()}`;
  const history = { owner: (state) => state.data.user, metadata: () => ({ app: "shop", agentkit: { title: "Trains" } }) };
  const { network } = await networkOf(() => "ok", { history });
  const { state } = await network.run("Hi", { state: createState({ user: owner }) });
  await network.run("Hi", { state: createState({ user: owner }, { threadId: state.threadId }) });

  const { threads } = await client().threads.list({ owner });

  expect(threads).toHaveLength(1);
  expect(threads[0].metadata).toEqual({ app: "shop", agentkit: { id: state.threadId, title: "Trains" } });
  expect(threads[0].ttlSeconds).toBe(2_592_000);
});

it("assigns an owner to a thread without one, and rejects a thread with another owner", async () => {
  const threadId = unique("owners");
  await client().threads.create({ id: await threadIdFor(threadId, "agentkit") });
  const owner = `user-${randomUUID()}`;
  const { network } = await networkOf(() => "ok", { history: { owner: (state) => state.data.user } });

  await network.run("Hi", { state: createState({ user: owner }, { threadId }) });
  const other = network.run("Hi", { state: createState({ user: "someone else" }, { threadId }) });

  await expect(other).rejects.toMatchObject({ code: "not_the_owner" });
  expect(await (await threadOf(threadId)).info()).toMatchObject({ owner, metadata: { agentkit: { id: threadId } } });
});

it("uses the ID of a thread unchanged", async () => {
  const threadId = await threadIdFor(randomUUID());
  const { network } = await networkOf(() => "ok");

  await network.run("Hi", { state: createState({}, { threadId }) });

  expect((await client().thread(threadId).info()).metadata).toEqual({ agentkit: { id: threadId } });
});

it("does not recreate a thread that has ended", async () => {
  const { network } = await networkOf(() => "ok");
  const { state } = await network.run("Hi");
  await (await threadOf(state.threadId)).destroy();

  const late = network.run("Hi", { state: createState({}, { threadId: state.threadId }) });

  await expect(late).rejects.toMatchObject({ code: "thread_destroyed" });
  expect(await valuesOf(state.threadId)).toEqual([]);
});

it("stores each item once when every step runs twice", async () => {
  const threadId = unique("steps");
  const ids = { user: randomUUID(), results: [randomUUID(), randomUUID()] };
  const memo = new Map();
  const names = new Set();
  /** Executes a durable function. The step named `crash` runs, but its result is lost. */
  const execute = async (crash) => {
    const step = {
      async run(name, task) {
        names.add(name);
        if (!memo.has(name)) {
          const result = JSON.stringify(await task());
          if (name === crash) throw new Error(`crash after ${name}`);
          memo.set(name, result);
        }
        return JSON.parse(memo.get(name));
      },
    };
    const { AgentResult } = await import("@inngest/agent-kit");
    const history = createHistory(options());
    const state = createState({}, { threadId });
    await history.createThread({ state, input: "Hi", step });
    // if an application passes only text, AgentKit generates a new ID in each execution
    const userMessage = { id: randomUUID(), role: "user", content: "Hi", timestamp: new Date() };
    await history.appendUserMessage({ state, threadId, step, userMessage });
    const before = await history.get({ state, threadId, step });
    const newResults = ids.results.map((id) => {
      const output = [{ type: "text", role: "assistant", content: "Same", stop_reason: "stop" }];
      return new AgentResult("writer", output, [], new Date(), undefined, undefined, undefined, id);
    });
    state.data.count = (state.data.count ?? 0) + 1;
    await history.appendResults({ state, threadId, step, newResults });
    return before;
  };

  for (const name of ["threadkeep-create", "threadkeep-user", "threadkeep-load", "threadkeep-results"]) {
    await expect(execute(name)).rejects.toThrow(`crash after ${name}`);
    await new Promise((resolve) => setTimeout(resolve, 5)); // makes the times differ
  }
  const before = await execute();

  expect([...names]).toEqual(["threadkeep-create", "threadkeep-user", "threadkeep-load", "threadkeep-results"]);
  expect(before.map((result) => result.agentName)).toEqual(["user"]);
  expect((await valuesOf(threadId)).map((value) => value.kind)).toEqual(["user", "agent", "agent"]);
  expect((await (await threadOf(threadId)).read()).state).toEqual({ "data.count": 1 });
});

it("rejects a reused message ID, and stores a message whose ID is not a valid item ID", async () => {
  const history = createHistory(options());
  const threadId = unique("ids");
  const append = (id, content) =>
    history.appendUserMessage({
      state: createState(),
      threadId,
      userMessage: { id, role: "user", content, timestamp: new Date() },
    });
  await append("ü ".repeat(100), "a");
  await append("ü ".repeat(100), "a");

  await expect(append("ü ".repeat(100), "b")).rejects.toMatchObject({ code: "item_id_reused" });

  expect(await valuesOf(threadId)).toMatchObject([{ id: "ü ".repeat(100), content: "a" }]);
});

it("loses no message when networks run in two processes concurrently", async () => {
  const threadId = unique("networks");
  const count = isLong ? 20 : 5;

  await inTwoProcesses("networks", "run", { threadId, count });

  const values = await valuesOf(threadId);
  const texts = values.map((value) => value.content ?? value.result.output[0].content);
  const messages = [0, 1].flatMap((number) => Array.from({ length: count }, (_, index) => `message ${number}-${index}`));
  expect(texts.filter((text) => text.startsWith("message")).sort()).toEqual(messages.sort());
  expect(texts.filter((text) => text.startsWith("answer"))).toHaveLength(2 * count);
  const { state } = await (await threadOf(threadId)).read();
  expect(state).toMatchObject({ "data.value-0": count - 1, "data.value-1": count - 1 });
  expect(Object.keys(state).filter((key) => key.startsWith("kv.kv-"))).toHaveLength(2 * count);
});
