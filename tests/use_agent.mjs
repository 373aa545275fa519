// Checks threads through the published transport and hook of @inngest/use-agent. Run by use-agent.sh. Usage:
// use_agent.mjs PART URL DIRECTORY API_KEY JWT_SECRET

import assert from "node:assert/strict";
import { createHash, createHmac, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [part, url, directory, apiKey, jwtSecret] = process.argv.slice(2);
const require = createRequire(`${directory}/package.json`);
const { DefaultHttpTransport, AgentProvider, useAgents } = await import(
  pathToFileURL(`${directory}/node_modules/@inngest/use-agent/dist/index.js`)
);

// owner of the threads that several processes of a run create
const SHARED = "shared-user";
const COUNT = 80;

const json = { "Content-Type": "application/json" };
const app = new DefaultHttpTransport({
  baseURL: `${url}/`,
  headers: async () => ({ ...json, Authorization: `Bearer ${apiKey}` }),
});

function threadIdFor(name) {
  const text = `8:agentkit${Buffer.byteLength(name)}:${name}`;
  return `thrd_${createHash("sha256").update(text).digest("hex").slice(0, 48)}`;
}

// Appends to a history as AgentKit's adapter does.
async function append(name, id, value) {
  const response = await fetch(`${url}/v1/threads/${threadIdFor(name)}/history`, {
    method: "POST",
    headers: { ...json, Authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ items: [{ id, value }] }),
  });
  return response.status;
}

function userEntry(id, content) {
  return { kind: "user", id, content, timestamp: new Date().toISOString() };
}

function agentEntry(id, content) {
  const output = [{ type: "text", role: "assistant", content }];
  return { kind: "agent", result: { id, agentName: "Guide", output, toolCalls: [] } };
}

function tokenFor(sub) {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 600;
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub, exp })}`;
  return `${text}.${createHmac("sha256", jwtSecret).update(text).digest("base64url")}`;
}

function transportOf(user) {
  return new DefaultHttpTransport({
    baseURL: url,
    headers: () => ({ ...json, Authorization: `Bearer ${tokenFor(user)}` }),
  });
}

async function create(transport, userId, id, title) {
  return transport.createThread({ userId, title }, { body: { id, from: "the app" } });
}

async function byOffset(transport, userId, limit) {
  const threads = [];
  for (;;) {
    const page = await transport.fetchThreads({ userId, limit, offset: threads.length });
    threads.push(...page.threads);
    if (!page.hasMore) return threads;
  }
}

async function byCursor(transport, userId, limit) {
  const threads = [];
  let cursor = {};
  for (;;) {
    const page = await transport.fetchThreads({ userId, limit, ...cursor });
    threads.push(...page.threads);
    if (!page.hasMore) {
      assert.equal(page.nextCursorId, null);
      return threads;
    }
    cursor = { cursorTimestamp: page.nextCursorTimestamp, cursorId: page.nextCursorId };
  }
}

async function createShared(remainder) {
  const numbers = Array.from({ length: COUNT }, (_, number) => number);
  await Promise.all(
    numbers.filter((number) => number % 2 === remainder).map((number) => create(app, SHARED, `chat ${number}`)),
  );
  // also create the threads of the other process, which may already have created them
  const others = numbers.filter((number) => number % 2 !== remainder);
  await Promise.all(others.map((number) => create(app, SHARED, `chat ${number}`)));
}

async function checkLists() {
  for (const list of [byOffset, byCursor]) {
    for (const limit of [7, 100]) {
      const threads = await list(app, SHARED, limit);
      assert.equal(threads.length, COUNT, list.name);
      assert.equal(new Set(threads.map(({ id }) => id)).size, COUNT, list.name);
    }
  }
  const page = await app.fetchThreads({ userId: SHARED });
  assert.equal(page.threads.length, 20);
  assert.equal(page.total, COUNT);
}

async function checkThreads() {
  const userId = randomUUID();
  const created = await app.createThread({ userId });
  assert.deepEqual(created, { threadId: created.threadId, title: "New conversation" });
  const name = `${userId}/ü?`;
  assert.deepEqual(await create(app, userId, name), { threadId: name, title: "New conversation" });
  assert.equal(await append(name, "1", userEntry("1", "What is\nthis?")), 200);
  assert.equal(await append(name, "2", agentEntry("2", "That")), 200);

  const messages = await app.fetchHistory({ threadId: name });
  assert.deepEqual(messages.map(({ message_id, type }) => [message_id, type]), [["1", "user"], ["2", "agent"]]);
  assert.equal(messages[1].data.output[0].content, "That");
  const { threads } = await app.fetchThreads({ userId });
  assert.deepEqual(threads.map(({ id }) => id), [name, created.threadId]);
  assert.equal(threads[0].title, "What is");
  assert.equal(threads[0].messageCount, 2);
  for (const time of [threads[0].lastMessageAt, threads[0].createdAt, threads[0].updatedAt]) {
    assert.ok(Math.abs(Date.now() - new Date(time)) < 600_000);
  }

  // the transport has no method for this route
  const patched = await fetch(`${url}/api/threads/${encodeURIComponent(name)}`, {
    method: "PATCH",
    headers: { ...json, Authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ title: "Renamed" }),
  });
  assert.deepEqual(await patched.json(), { success: true, title: "Renamed" });
  assert.equal((await app.fetchThreads({ userId })).threads[0].title, "Renamed");

  await app.deleteThread({ threadId: name });
  await app.deleteThread({ threadId: name });
  assert.equal(await append(name, "3", agentEntry("3", "late")), 410);
  await assert.rejects(app.fetchHistory({ threadId: name }), /There is no such thread/);
  assert.deepEqual((await app.fetchThreads({ userId })).threads.map(({ id }) => id), [created.threadId]);
  await assert.rejects(app.sendMessage({ userMessage: userEntry("1", "x"), threadId: name, history: [] }), /your app/);
}

async function checkUsers() {
  const [ann, bob] = [randomUUID(), randomUUID()];
  const [own, other] = [transportOf(ann), transportOf(bob)];
  const created = await own.createThread({ userId: ann, title: "Mine" });
  await create(other, bob, `${bob} chat`);

  assert.deepEqual((await own.fetchThreads({ userId: ann })).threads.map(({ id }) => id), [created.threadId]);
  assert.deepEqual((await own.fetchThreads({})).threads.map(({ id }) => id), [created.threadId]);
  for (const call of [
    () => own.fetchThreads({ userId: bob }),
    () => own.createThread({ userId: bob }),
    () => own.fetchHistory({ threadId: `${bob} chat` }),
    () => own.deleteThread({ threadId: `${bob} chat` }),
    () => create(own, ann, `${bob} chat`),
  ]) {
    await assert.rejects(call, /owner/i);
  }
  const nobody = new DefaultHttpTransport({ baseURL: url });
  await assert.rejects(nobody.fetchThreads({ userId: ann }));
  assert.equal((await other.fetchThreads({})).total, 1);
}

// Runs the hook in a page, where it lists threads, loads more pages, opens a thread and deletes it.
async function checkHook() {
  const { JSDOM } = require("jsdom");
  const { window } = new JSDOM("<div id=root></div>", { url: "https://app.example" });
  for (const name of ["window", "document", "navigator", "sessionStorage", "localStorage"]) {
    const value = name === "window" ? window : window[name];
    Object.defineProperty(globalThis, name, { value, configurable: true });
  }
  globalThis.IS_REACT_ACT_ENVIRONMENT = false;
  const { createElement } = require("react");
  const { createRoot } = require("react-dom/client");

  const userId = randomUUID();
  for (let number = 0; number < 25; number++) {
    await create(app, userId, `${userId} ${number}`);
  }
  const first = `${userId} 3`;
  await append(first, "1", userEntry("1", "Hello"));
  await append(first, "2", agentEntry("2", "Hi"));

  let agent;
  function Page() {
    agent = useAgents({ threadsPageSize: 10, debug: false });
    return null;
  }
  const transport = { baseURL: url, headers: { ...json, Authorization: `Bearer ${tokenFor(userId)}` } };
  const root = createRoot(window.document.getElementById("root"));
  root.render(createElement(AgentProvider, { userId, transport, debug: false }, createElement(Page)));

  const until = async (description, holds) => {
    for (const end = performance.now() + 120_000; !holds(); ) {
      assert.ok(performance.now() < end, `${description}: ${agent?.threadsError}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await until("the first page", () => agent?.threads.length === 10);
  assert.equal(agent.threads[0].id, first);
  assert.equal(agent.threads[0].title, "Hello");
  for (const count of [20, 25]) {
    await agent.loadMoreThreads();
    await until(`${count} threads`, () => agent.threads.length === count);
  }
  assert.equal(agent.threadsHasMore, false);
  const messages = await agent.loadThreadHistory(first);
  assert.deepEqual(messages.map(({ role, parts }) => [role, parts[0].content]), [["user", "Hello"], ["assistant", "Hi"]]);
  await agent.deleteThread(first);
  await until("the deletion", () => agent.threads.length === 24);
  await agent.refreshThreads();
  await until("the fresh list", () => !agent.threads.some(({ id }) => id === first));
  root.unmount();
  window.close();
}

const parts = {
  "create-even": () => createShared(0),
  "create-odd": () => createShared(1),
  lists: checkLists,
  threads: checkThreads,
  users: checkUsers,
  hook: checkHook,
};
await parts[part]();
console.log(`use-agent: ${part} ok at ${url}`);
process.exit(0);
