// Runs the published @openai/agents with a scripted model. Compares the adapter's session with the SDK's MemorySession.

import { randomUUID } from "node:crypto";
import { Agent, MemorySession, RunState, Runner, tool } from "@openai/agents";
import { assistantMessage, functionCall, modelError, ScriptedModel } from "@openai/agents/testing";
import { ThreadkeepSession } from "threadkeep/openai-agents";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startProxy } from "../support/proxy.mjs";
import { options, servers, unique } from "../support/servers.mjs";

const runner = new Runner({ tracingDisabled: true });
const stops = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

const sessionOf = (extra) => new ThreadkeepSession({ ...options(), sessionId: unique("session"), ...extra });

const add = (extra) =>
  tool({
    name: "add",
    description: "Adds.",
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => String(a + b),
    ...extra,
  });

const agentOf = (steps, tools = []) => new Agent({ name: "writer", instructions: "You write.", tools, model: new ScriptedModel(steps) });

const text = (content, members = {}) => ({ type: "message", role: "user", content, ...members });
const call = (callId, members = {}) => ({ type: "function_call", callId, name: "add", arguments: "{}", status: "completed", ...members });

/** Each case takes a session and a function that reopens the session, and returns a result to compare. */
const cases = {
  async "two turns"(session) {
    const agent = agentOf([[assistantMessage("Hello")], [assistantMessage("Bye")]]);
    await runner.run(agent, "Hi", { session });
    await runner.run(agent, "See you", { session });
    return agent.model.lastCall.request.input;
  },

  async "a tool"(session) {
    const calling = functionCall("add", { a: 1, b: 2 }, { callId: "call_1" });
    const agent = agentOf([[calling], [assistantMessage("3")]], [add()]);
    return (await runner.run(agent, "Add", { session })).finalOutput;
  },

  async "two tools at once, streamed"(session) {
    const calls = [1, 2].map((a) => functionCall("add", { a, b: a }, { callId: `call_${a}` }));
    const agent = agentOf([calls, [assistantMessage("2 and 4")]], [add()]);
    const result = await runner.run(agent, "Add", { session, stream: true });
    for await (const _ of result);
    await result.completed;
    return result.finalOutput;
  },

  async "a turn that fails"(session) {
    const agent = agentOf([modelError(new Error("down")), [assistantMessage("Hello")]]);
    const failure = await runner.run(agent, "Hi", { session }).catch((error) => error.message);
    await runner.run(agent, "Hi again", { session });
    return failure;
  },

  async "a tool that needs an approval, in a run that resumes later"(session, reopen) {
    const calling = functionCall("add", { a: 1, b: 2 }, { callId: "call_1" });
    const agent = agentOf([[calling], [assistantMessage("3")]], [add({ needsApproval: true })]);
    const paused = await runner.run(agent, "Add", { session });
    const state = await RunState.fromString(agent, paused.state.toString());
    state.approve(state.getInterruptions()[0]);
    return (await runner.run(agent, state, { session: reopen() })).finalOutput;
  },

  async "items that the runner combines"(session) {
    await session.addItems([text("old")]);
    const agent = agentOf([[assistantMessage("ok")]]);
    await runner.run(agent, [text("new")], { session, sessionInputCallback: (history, items) => [...history.slice(-1), ...items] });
    return agent.model.lastCall.request.input;
  },

  async "reads, pops and a clear"(session) {
    await session.addItems([]);
    await session.addItems(["a", "b", "c"].map((content) => text(content)));
    const seen = [await session.getItems(2), await session.getItems(0), await session.getItems(-1), await session.getItems(9)];
    seen.push(await session.popItem());
    await session.clearSession();
    seen.push(await session.popItem(), await session.getItems());
    await session.addItems([text("again", { providerData: { unknown: [1.5, null, "ü"] } })]);
    return seen;
  },

  async "bytes and unknown members"(session) {
    const image = { type: "image", image: { data: new Uint8Array([0, 255, 10]), mediaType: "image/png" } };
    const odd = [{ $bytes: "a", y: 1 }, { $bytes: "?" }, { $bytes: [{ $bytes: new Uint8Array([1]) }] }, { $bytes: null }];
    await session.addItems([{ type: "function_call_result", callId: "c", name: "add", status: "completed", output: image, odd }]);
  },

  async "a function call that is replaced"(session) {
    await session.addItems([text("a"), call("1"), call("2"), call("1"), text("b")]);
    await session.applyHistoryMutations({ mutations: [] });
    const replacement = call("1", { arguments: '{"a":1}' });
    await session.applyHistoryMutations({ mutations: [{ type: "replace_function_call", callId: "1", replacement }] });
    await session.applyHistoryMutations({ mutations: [{ type: "replace_function_call", callId: "none", replacement }] });
  },

  async transactions(session, reopen) {
    const items = [text("a"), text("b")];
    const append = { operationId: "op/1 ü", transaction: { type: "append_items", items } };
    await session.applyHistoryTransaction(append);
    await reopen().applyHistoryTransaction(append);
    const replace = (operationId, expectedSuffix, replacement) =>
      reopen()
        .applyHistoryTransaction({ operationId, transaction: { type: "replace_suffix", expectedSuffix, replacement } })
        .then(() => "done", () => "rejected");
    return [
      await replace("2", [text("b")], [text("c"), text("d")]),
      await replace("2", [text("b")], [text("c"), text("d")]),
      await replace("2", [text("d")], [text("x")]),
      await replace("3", [text("b")], [text("x")]),
      await replace("4", Array.from({ length: 9 }, () => text("a")), []),
      await replace("5", [], [text("e")]),
      await replace("", [], []),
    ];
  },
};

describe("like MemorySession", () => {
  it.each(Object.keys(cases))("%s", async (name) => {
    const memory = new MemorySession();
    const session = sessionOf();
    const sessionId = await session.getSessionId();

    const expected = await cases[name](memory, () => memory);
    const result = await cases[name](session, () => sessionOf({ sessionId }));

    expect(await sessionOf({ sessionId }).getItems()).toEqual(await memory.getItems());
    expect(result).toEqual(expected);
  });
});

it("applies a transaction once when its response is lost", async () => {
  const proxy = await startProxy(servers[0], ({ method }) => (method === "PATCH" ? "lose" : undefined));
  stops.push(proxy.stop);
  const session = sessionOf();
  const sessionId = await session.getSessionId();
  const proxied = sessionOf({ sessionId, baseUrl: proxy.url, attempts: 2 });
  const append = { operationId: randomUUID(), transaction: { type: "append_items", items: [text("a")] } };

  await expect(proxied.applyHistoryTransaction(append)).rejects.toMatchObject({ code: "connection" });
  await session.applyHistoryTransaction(append);

  expect(await session.getItems()).toEqual([text("a")]);
});

it("returns each item to only one of several callers of `popItem` during pushes", async () => {
  const session = sessionOf();
  const sessionId = await session.getSessionId();
  const others = [0, 1].map((replica) => sessionOf({ sessionId, ...options(replica) }));
  await session.addItems(Array.from({ length: 10 }, (_, index) => text(`first-${index}`)));

  const popped = [];
  await Promise.all([
    ...others.map(async (other) => {
      for (let index = 0; index < 20; index++) popped.push(await other.popItem());
    }),
    (async () => {
      for (let index = 0; index < 20; index++) await session.addItems([text(`then-${index}`)]);
    })(),
  ]);

  const all = [...popped.filter(Boolean), ...(await session.getItems())].map(({ content }) => content);
  expect(all).toHaveLength(30);
  expect(new Set(all).size).toBe(30);
});

it("keeps the newest items, even if they need several writes", async () => {
  const session = sessionOf({ maxItems: 1_500 });

  await session.addItems(Array.from({ length: 2_500 }, (_, index) => text(String(index))));

  const items = await session.getItems();
  expect(items).toHaveLength(1_500);
  expect([items[0].content, items.at(-1).content]).toEqual(["1000", "2499"]);
  const suffix = items.slice(-1_200);
  const transaction = { type: "replace_suffix", expectedSuffix: suffix, replacement: [text("one")] };
  await session.applyHistoryTransaction({ operationId: "large", transaction });
  expect(await session.getItems()).toHaveLength(301);
});

it("stops at the first failed write if items need several writes", async () => {
  let writes = 0;
  const proxy = await startProxy(servers[0], ({ method }) => (method === "PATCH" && ++writes === 2 ? "refuse" : undefined));
  stops.push(proxy.stop);
  const session = sessionOf({ baseUrl: proxy.url, attempts: 1 });

  const adding = session.addItems(Array.from({ length: 2_500 }, (_, index) => text(String(index))));
  const popping = session.popItem();

  await expect(adding).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await popping).toEqual(text("999"));
  expect(await session.getItems()).toHaveLength(999);
});

it("rejects the run if the session is full", async () => {
  const session = sessionOf();
  await session.addItems([text("x".repeat(1_000_000))]);
  const agent = agentOf([[assistantMessage("y".repeat(100_000))]]);

  const run = runner.run(agent, "Hi", { session });

  await expect(run).rejects.toMatchObject({ name: "TooLargeError", code: "state_too_large" });
});
