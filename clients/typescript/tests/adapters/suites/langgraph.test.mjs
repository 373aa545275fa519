import { randomUUID } from "node:crypto";
import { Annotation, Command, interrupt, START, StateGraph } from "@langchain/langgraph";
import { compareWritesSortKeys, emptyCheckpoint, MemorySaver, uuid6, writesSortKey } from "@langchain/langgraph-checkpoint";
import { createAdmin } from "threadkeep/admin";
import { ThreadkeepSaver } from "threadkeep/langgraph";
import { afterEach, expect, it } from "vitest";
import { inTwoProcesses, startProcess } from "../support/processes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { isLong, options, servers, unique } from "../support/servers.mjs";
import { configOf, graphOf } from "../workers/graphs.mjs";

const prefix = randomUUID().slice(0, 8);
const saver = () => new ThreadkeepSaver(options(0, { prefix }));
const admin = createAdmin(options());
const meta = { source: "loop", step: 0, parents: {} };
const stops = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

async function runInProcess(name, number, argument) {
  const { result, stop } = await startProcess("graphs", name, number, { prefix, ...argument });
  stop();
  return result;
}

const checkpoint = (values = {}, versions = {}) => ({
  ...emptyCheckpoint(),
  id: uuid6(0),
  channel_values: values,
  channel_versions: versions,
});

async function tuplesOf(thread_id) {
  const tuples = [];
  for await (const tuple of saver().list(configOf(thread_id))) tuples.push(tuple);
  return tuples;
}

it("resumes an interrupted graph in another process", async () => {
  const thread = unique("graph");

  expect(await runInProcess("start", 0, { thread })).toEqual(["How many?"]);
  const state = await runInProcess("resume", 1, { thread, answer: { count: 5 } });

  expect(state.log).toEqual(["begin", "first", 'asked: {"count":5}', "parts: 5"]);
  expect(state.parts).toEqual([0, 1, 2, 3, 4]);
  expect(state.bytes).toEqual(new Uint8Array([0, 255, 128]));
  const history = [];
  for await (const snapshot of graphOf(0, prefix).getStateHistory(configOf(thread))) history.push(snapshot);
  expect(history.length).toBe(6);
  expect(history[0].values.parts).toEqual([0, 1, 2, 3, 4]);
  expect(history.at(-1).metadata.source).toBe("input");
});

it("stores values larger than an entry", async () => {
  const thread = unique("large");
  await runInProcess("start", 0, { thread });

  const state = await runInProcess("resume", 1, { thread, answer: { count: 3, large: 1_500_000 } });

  expect(state.parts.map((part) => part.length)).toEqual([1_500_001, 1_500_001, 1_500_001]);
  expect((await graphOf(0, prefix).getState(configOf(thread))).values.parts).toEqual(state.parts);
});

it("keeps two branches of a thread separate, although their channels have equal counters", async () => {
  const run = async (checkpointer) => {
    const graph = graphOf(0, prefix, checkpointer);
    const config = configOf(unique("branches"));
    await graph.invoke({ log: ["begin"] }, config);
    const interrupted = (await graph.getState(config)).config;
    const results = [];
    for (const count of [1, 2]) {
      const fork = await graph.updateState(interrupted, { log: [`asked: {"count":${count}}`] }, "ask");
      await graph.invoke(null, fork);
      const { config: end } = await graph.getState(config);
      results.push(end);
    }
    return Promise.all(results.map(async (end) => (await graph.getState(end)).values));
  };

  const [first, second] = await run();

  expect(first.parts).toEqual([0]);
  expect(second.parts).toEqual([0, 1]);
  expect([first, second]).toEqual(await run(new MemorySaver()));
});

it("stores subgraphs, whose namespaces are long and contain special characters", async () => {
  const State = Annotation.Root({ answer: Annotation() });
  const inner = new StateGraph(State)
    .addNode("ask", () => ({ answer: interrupt("?") }))
    .addEdge(START, "ask")
    .compile();
  const graphAt = (number) =>
    new StateGraph(State)
      .addNode("a-node-with-a-rather-long-name/ü".repeat(8), inner)
      .addEdge(START, "a-node-with-a-rather-long-name/ü".repeat(8))
      .compile({ checkpointer: new ThreadkeepSaver(options(number, { prefix })) });
  const config = configOf(unique("subgraphs"));
  await graphAt(0).invoke({}, config);

  expect(await graphAt(1).invoke(new Command({ resume: "yes" }), config)).toEqual({ answer: "yes" });

  const namespaces = new Set((await tuplesOf(config.configurable.thread_id)).map(({ config: c }) => c.configurable.checkpoint_ns));
  expect(namespaces.size).toBe(2);
});

it("loses no writes of tasks in two processes, and keeps the first write at an index", async () => {
  const thread_id = unique("writes");
  const config = await saver().put({ configurable: { thread_id, checkpoint_ns: "" } }, checkpoint(), meta, {});
  const count = isLong ? 100 : 20;

  await inTwoProcesses("graphs", "putWrites", { config, prefix, count });

  const { pendingWrites } = await saver().getTuple(config);
  const ofTasks = pendingWrites.filter(([task]) => task !== "shared");
  expect(ofTasks).toHaveLength(4 * count);
  expect(ofTasks.every(([task, , value]) => task === value)).toBe(true);
  const shared = pendingWrites.filter(([task]) => task === "shared");
  expect(shared.map(([, channel]) => channel)).toEqual(["__error__", "channel"]);
});

it("keeps the writes of a checkpoint that is put again concurrently", async () => {
  const thread_id = unique("again");
  const config = { configurable: { thread_id, checkpoint_ns: "" } };
  const same = checkpoint({ a: 1 }, { a: 1 });
  const saved = await saver().put(config, same, meta, { a: 1 });

  await Promise.all(
    Array.from({ length: 10 }, (_, index) => [
      saver().put(config, same, meta, { a: 1 }),
      saver().putWrites(saved, [["a", index]], `task-${index}`),
    ]).flat(),
  );

  const tuple = await saver().getTuple(saved);
  expect(tuple.pendingWrites).toHaveLength(10);
  expect(tuple.checkpoint.channel_values).toEqual({ a: 1 });
});

it("shows all writes of a call or none", async () => {
  const thread_id = unique("atomic");
  const proxy = await startProxy(servers[0], ({ method, url }) => (/\/w%2F/.test(url) && method === "PUT" ? "refuse" : undefined));
  stops.push(proxy.stop);
  const broken = new ThreadkeepSaver({ ...options(0, { prefix, attempts: 1 }), baseUrl: proxy.url });
  const saved = await broken.put({ configurable: { thread_id } }, checkpoint(), meta, {});

  const writes = [["a", 1], ["b", "x".repeat(2_000_000)], ["c", 3]];
  await expect(broken.putWrites(saved, writes, "task")).rejects.toMatchObject({ code: "store_unavailable" });
  expect((await saver().getTuple(saved)).pendingWrites).toEqual([]);

  await saver().putWrites(saved, writes, "task");
  await saver().putWrites(saved, [["a", "later"], ["__interrupt__", "last"]], "task");
  await saver().putWrites(saved, [["__interrupt__", "newest"]], "task");
  const { pendingWrites } = await saver().getTuple(saved);
  expect(pendingWrites.map(([, channel, value]) => [channel, value.length ?? value])).toEqual([
    ["__interrupt__", 6],
    ["a", 1],
    ["b", 2_000_000],
    ["c", 3],
  ]);
});

it("writes a checkpoint after its values, so that a crash in between leaves the previous checkpoint", async () => {
  const thread_id = unique("commit");
  const first = await saver().put({ configurable: { thread_id } }, checkpoint({ a: 1 }, { a: 1 }), meta, { a: 1 });
  const proxy = await startProxy(servers[0], ({ method, url }) => (/\/c%2F/.test(url) && method === "PUT" ? "refuse" : undefined));
  stops.push(proxy.stop);
  const broken = new ThreadkeepSaver({ ...options(0, { prefix, attempts: 1 }), baseUrl: proxy.url });

  await expect(broken.put(first, checkpoint({ a: 2 }, { a: 2 }), meta, { a: 2 })).rejects.toThrow("store_unavailable");

  const newest = await saver().getTuple({ configurable: { thread_id } });
  expect(newest.config).toEqual(first);
  expect(newest.checkpoint.channel_values).toEqual({ a: 1 });
});

it("sorts writes as LangGraph does", async () => {
  const saved = await saver().put({ configurable: { thread_id: unique("order") } }, checkpoint(), meta, {});
  const names = ["", "b", "a", "a b", "ü", "\ud83d\ude00", "\uffff", "B", "10", "9"];
  const expected = [];
  for (const [index, task] of names.entries()) {
    const path = names[(index * 7) % names.length];
    await saver().putWrites(saved, [["x", `${path}|${task}`]], task || "empty", path);
    expected.push([writesSortKey(path, task || "empty", 0), `${path}|${task}`]);
  }

  const { pendingWrites } = await saver().getTuple(saved);

  expected.sort(([a], [b]) => compareWritesSortKeys(a, b));
  expect(pendingWrites.map(([, , value]) => value)).toEqual(expected.map(([, value]) => value));
});

it("needs at most three requests for the newest checkpoint of a long thread", async () => {
  const thread_id = unique("many");
  let config = { configurable: { thread_id } };
  for (let step = 0; step < (isLong ? 300 : 30); step++) {
    const values = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`channel-${index}`, step]));
    const versions = Object.fromEntries(Object.keys(values).map((name) => [name, step]));
    config = await saver().put(config, checkpoint(values, versions), { ...meta, step }, versions);
  }
  const proxy = await startProxy(servers[0]);
  stops.push(proxy.stop);

  const tuple = await new ThreadkeepSaver({ ...options(0, { prefix }), baseUrl: proxy.url }).getTuple({ configurable: { thread_id } });

  expect(tuple.config).toEqual(config);
  expect(proxy.requests.length).toBeLessThanOrEqual(3);
  const before = [];
  for await (const { metadata } of saver().list({ configurable: { thread_id } }, { before: config, limit: 2 })) before.push(metadata.step);
  expect(before).toEqual([tuple.metadata.step - 1, tuple.metadata.step - 2]);
});

it("sets the idle TTL of a thread if the option is set", async () => {
  const own = randomUUID().slice(0, 8);
  const thread_id = unique("idle");
  await new ThreadkeepSaver(options(0, { prefix: own, idleTtlSeconds: 600 })).put({ configurable: { thread_id } }, checkpoint(), meta, {});

  const namespaces = [];
  let cursor;
  do {
    const page = await admin.namespaces({ cursor, limit: 100 });
    namespaces.push(...page.items.filter(({ namespace }) => namespace.startsWith(`${own}.`)));
    cursor = page.next;
  } while (cursor);
  expect(namespaces).toMatchObject([{ idleTtlSeconds: 600, entries: 1 }]);
});

it("deletes only the given thread", async () => {
  const [a, b] = [unique("delete"), unique("delete")];
  for (const thread_id of [a, b]) await saver().put({ configurable: { thread_id } }, checkpoint(), meta, {});

  await saver().deleteThread(a);

  expect(await tuplesOf(a)).toEqual([]);
  expect(await tuplesOf(b)).toHaveLength(1);
});

it("rejects writes without a thread ID or checkpoint ID", async () => {
  await expect(saver().put({ configurable: {} }, checkpoint(), meta, {})).rejects.toThrow("thread_id");
  await expect(saver().putWrites({ configurable: { checkpoint_id: "x" } }, [["a", 1]], "t")).rejects.toThrow("thread_id");
  await expect(saver().putWrites({ configurable: { thread_id: "x" } }, [["a", 1]], "t")).rejects.toThrow("checkpoint_id");
  expect(await saver().getTuple({ configurable: {} })).toBeUndefined();
});
