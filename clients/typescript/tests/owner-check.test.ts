import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Client, createClient, type Thread, threadIdFor } from "threadkeep";
import { API_KEY, startServer } from "./support/server.js";

let backEnd: Client;
let requests: string[] = [];
before(async () => {
  const { url } = await startServer();
  const recordingFetch: typeof fetch = (input, init) => {
    requests.push(`${init!.method} ${String(input).slice(url.length)}`);
    return fetch(input, init);
  };
  backEnd = createClient({ baseUrl: url, apiKey: API_KEY, fetch: recordingFetch });
});

const first = async (items: AsyncIterable<unknown>) => {
  for await (const item of items) return item;
};

const calls: { [name: string]: (thread: Thread) => Promise<unknown> } = {
  info: (thread) => thread.info(),
  read: (thread) => thread.read(),
  get: (thread) => thread.get("a"),
  set: (thread) => thread.set("a", 1),
  update: (thread) => thread.update("a", () => [{ op: "clear" }]),
  configure: (thread) => thread.configure({ metadata: { a: 1 } }),
  destroy: (thread) => thread.destroy(),
  fork: (thread) => thread.fork(),
  turn: (thread) => thread.turn(),
  append: (thread) => thread.history.append({ id: "x", value: 1 }),
  items: (thread) => first(thread.history.items()),
  checkpoint: (thread) => thread.checkpoints.create(),
  events: (thread) => first(thread.events()),
};

for (const owner of ["grace", undefined]) {
  for (const [name, call] of Object.entries(calls)) {
    test(`${name} neither reads nor writes a thread of ${owner ?? "no owner"}`, async () => {
      const stored = await backEnd.threads.create({ state: { secret: 1 }, ...(owner && { owner }) });
      const { version } = await stored.info();
      requests = [];

      await assert.rejects(call(backEnd.thread(stored.id!, { owner: "ada" })), { name: "ForbiddenError", code: "not_the_owner" });

      assert.deepEqual(requests, [`GET /v1/threads/${stored.id}?peek=true`]);
      assert.equal((await stored.info()).version, version);
    });
  }
}

test("a thread of the owner is checked once, before its first calls", async () => {
  const { id } = await backEnd.threads.create({ owner: "ada", state: { a: 1 } });
  requests = [];
  const thread = backEnd.thread<{ a: number }>(id!, { owner: "ada" });
  assert.deepEqual(requests, []);

  const [a, , items] = await Promise.all([thread.get("a"), thread.increment("a"), thread.history.latest(5)]);

  assert.ok(a === 1 || a === 2);
  assert.deepEqual(items, []);
  assert.equal(requests.length, 4);
  assert.equal(requests[0], `GET /v1/threads/${id}?peek=true`);
});

test("a thread that does not exist is created for the owner, with the TTL of its first write", async () => {
  const id = await threadIdFor(crypto.randomUUID());
  const [one, two] = [backEnd.thread(id, { owner: "ada" }), backEnd.thread(id, { owner: "ada" })];

  await Promise.all([one.push("messages", "Hello", { ttlSeconds: 900 }), two.push("messages", "Hi", { ttlSeconds: 900 })]);

  const { owner, ttlSeconds } = await backEnd.thread(id).info();
  assert.deepEqual([owner, ttlSeconds], ["ada", 900]);
  assert.equal((await one.get("messages")).length, 2);
  await assert.rejects(backEnd.thread(id, { owner: "grace" }).get("messages"), { code: "not_the_owner" });
});

test("a thread that a read creates has the TTL of its object", async () => {
  const thread = backEnd.thread(await threadIdFor(crypto.randomUUID()), { owner: "ada", ttlSeconds: 900 });

  assert.equal(await thread.get("messages"), undefined);

  const { owner, ttlSeconds } = await thread.info();
  assert.deepEqual([owner, ttlSeconds], ["ada", 900]);
});

test("a check that was aborted or has failed is repeated", async () => {
  const { id } = await backEnd.threads.create({ owner: "ada", state: { a: 1 } });
  const thread = backEnd.thread(id!, { owner: "ada" });
  await assert.rejects(thread.get("a", { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(await thread.get("a"), 1);

  const ownerless = await backEnd.threads.create({ state: { a: 1 } });
  const opened = backEnd.thread(ownerless.id!, { owner: "ada" });
  await assert.rejects(opened.get("a"), { code: "not_the_owner" });
  await assert.rejects(opened.get("a"), { code: "not_the_owner" });
});

test("an undefined owner is rejected", () => {
  assert.throws(() => backEnd.thread("thrd_x", { owner: undefined }), TypeError);
});
