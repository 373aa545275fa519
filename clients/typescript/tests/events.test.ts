import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { createClient, type Thread, type ThreadEvent } from "threadkeep";
import { type Proxy, startProxy } from "./support/proxy.js";
import { API_KEY, type Server, startServer, STORE } from "./support/server.js";
import { until } from "./support/until.js";

let server: Server;
let proxy: Proxy;
before(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
});

function collect(thread: Thread, o: Parameters<Thread["events"]>[0] = {}) {
  const controller = new AbortController();
  const events: ThreadEvent[] = [];
  let opened = 0;
  const done = (async () => {
    const stream = thread.events({ signal: controller.signal, onOpen: () => opened++, ...o });
    for await (const event of stream) events.push(event);
  })();
  done.catch(() => {});
  return {
    events,
    done,
    stop: () => controller.abort(),
    isOpen: () => opened > 0,
    opened: () => opened,
    versions: () => events.map((event) => ("version" in event ? event.version : event.type)),
  };
}

describe("events", () => {
  test("an update event names the keys, and an append event the positions", async () => {
    const thread = createClient({ baseUrl: server.url }).current();
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    await thread.merge([{ op: "set", key: "b", value: 1 }, { op: "set", key: "a", value: 1 }]);
    await thread.history.append({ id: "x", value: 1 });
    await until("there are events", () => stream.events.length >= 2);
    const [created, appended] = stream.events;
    assert.ok(created?.type === "thread.created" || created?.type === "thread.updated");
    assert.deepEqual([created.threadId, created.version, created.keys], [thread.id, 1, ["a", "b"]]);
    assert.ok(appended?.type === "history.appended");
    assert.deepEqual([appended.firstSeq, appended.lastSeq], [1, 1]);
    stream.stop();
    await assert.rejects(stream.done, { name: "AbortError" });
  });

  test("the loop ends when the thread is destroyed, and a new loop follows the new thread", async () => {
    const thread = createClient({ baseUrl: server.url }).current();
    await thread.set("a", 1);
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    await thread.destroy();
    await stream.done;
    const last = stream.events.at(-1);
    assert.ok(last?.type === "thread.destroyed");
    assert.deepEqual(last.data.state, { a: 1 });
    const next = collect(thread);
    await until("it is open", next.isOpen);
    await thread.set("b", 1);
    await until("there is an event", () => next.events.length);
    assert.equal((next.events[0] as { threadId: string }).threadId, thread.id);
    next.stop();
  });

  test("the loop ends when the thread is rotated, and continues with the new ID", async () => {
    const thread = createClient({ baseUrl: server.url }).current();
    await thread.set("a", 1);
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    const { id } = await thread.rotate();
    await stream.done;
    const last = stream.events.at(-1);
    assert.ok(last?.type === "thread.rotated" && last.newThreadId === id);
  });

  test("leaving the loop closes the connection, even during a pending `next`", async () => {
    const thread = createClient({ baseUrl: proxy.url }).current();
    await thread.set("a", 1);
    const stream = thread.events();
    const next = stream.next();
    await until("it is open", () => proxy.open === 1);
    await stream.return!();
    assert.deepEqual(await next, { done: true, value: undefined });
    await until("it is closed", () => proxy.open === 0);
    for await (const _ of collectOne(thread)) break;
    await until("it is closed", () => proxy.open === 0);
  });

  async function* collectOne(thread: Thread) {
    for await (const event of thread.events({ onOpen: () => void thread.set("a", 2) })) yield event;
  }

  test("a cursor continues a stream", async () => {
    const thread = createClient({ baseUrl: server.url }).current();
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    for (let index = 0; index < 3; index++) await thread.push("list", index);
    await until("there are events", () => stream.events.length === 3);
    stream.stop();
    const again = collect(thread, { lastEventId: stream.events[0]!.cursor });
    await until("there are events", () => again.events.length === 2);
    assert.deepEqual(again.versions(), [2, 3]);
    again.stop();
  });

  test("no event is missed or repeated when the connection is cut again and again", async () => {
    const thread = createClient({ baseUrl: proxy.url }).current();
    await thread.set("ü", 0);
    proxy.fault = ({ path }) => (path.endsWith("/events") ? { cutInCharacter: true } : undefined);
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    const writer = createClient({ baseUrl: server.url, signedId: thread.signedId }).current();
    for (let version = 2; version <= 40; version++) {
      await writer.set(version % 5 ? "plain" : "ü", version);
      if (version % 16 === 0) proxy.cut();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    // the proxy cuts the stream in the middle of a multi-byte character, before the event is complete
    await until("it was cut", () => stream.opened() >= 2);
    proxy.fault = () => undefined;
    proxy.cut();
    await until("all events have arrived", () => stream.versions().at(-1) === 40);
    assert.deepEqual(stream.versions(), Array.from({ length: 39 }, (_, index) => index + 2));
    stream.stop();
  });

  test("a stream survives a restart of the server", async () => {
    const own = await startServer();
    const thread = createClient({ baseUrl: own.url, attempts: 10 }).current();
    await thread.set("a", 1);
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    await own.restart();
    await until("it is open again", () => stream.opened() >= 2);
    await thread.set("a", 2);
    await until("there is an event", () => stream.events.length);
    if (STORE === "redis") assert.deepEqual(stream.versions(), [2]);
    stream.stop();
  });

  test("a rejection ends a stream, and other failures are retried", async () => {
    const thread = createClient({ baseUrl: proxy.url }).current();
    proxy.fault = () => undefined;
    await thread.set("a", 1);
    const answers = [{ status: 503 }, { status: 408 }, { status: 200, body: "<html>", headers: { "content-type": "text/html" } }];
    proxy.fault = ({ path }) => (path.endsWith("/events") ? answers.shift() : undefined);
    const stream = collect(thread);
    await until("it is open", stream.isOpen);
    stream.stop();
    proxy.fault = ({ path }) => (path.endsWith("/events") ? { status: 403 } : undefined);
    await assert.rejects(thread.events().next(), { name: "ForbiddenError" });
    proxy.fault = () => undefined;
    const strange = createClient({ baseUrl: server.url, signedId: "thrd_x;y" }).current();
    await assert.rejects(strange.events().next(), { name: "AuthenticationError" });
  });

  test("a back end receives the events of all threads, filtered by type", async () => {
    const backEnd = createClient({ baseUrl: server.url, apiKey: API_KEY });
    const seen: ThreadEvent[] = [];
    const controller = new AbortController();
    let isOpen = false;
    const loop = (async () => {
      const stream = backEnd.events({ types: ["thread.created", "thread.destroyed"], signal: controller.signal, onOpen: () => (isOpen = true) });
      for await (const event of stream) seen.push(event);
    })();
    await until("it is open", () => isOpen);
    const thread = await backEnd.threads.create({ state: { a: 1 } });
    await thread.set("a", 2);
    await thread.destroy();
    await until("there are events", () => seen.some((event) => event.type === "thread.destroyed"));
    assert.deepEqual(seen.map(({ type }) => type), ["thread.created", "thread.destroyed"]);
    controller.abort();
    await assert.rejects(loop);
  });

  test("new values come with an event, if they were requested", async (t) => {
    const thread = createClient({ baseUrl: server.url }).current();
    await thread.set("a", 1);
    const answer = await fetch(server.url + "/v1/threads/current/events?values=true", { headers: { "x-thread-id": thread.signedId! } });
    await answer.body?.cancel();
    if (!answer.ok) return t.skip("this server sends no values");
    const stream = collect(thread, { values: true });
    await until("it is open", stream.isOpen);
    await thread.set("b", [1, { c: 2 }]);
    await until("there is an event", () => stream.events.length);
    assert.deepEqual((stream.events[0] as { values?: object }).values, { b: [1, { c: 2 }] });
    stream.stop();
  });
});
