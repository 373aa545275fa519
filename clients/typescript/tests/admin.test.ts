import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Client, createClient } from "threadkeep";
import { type Admin, createAdmin } from "threadkeep/admin";
import { API_KEY, startServer } from "./support/server.js";
import { serverHas } from "./support/server-has.js";
import { until } from "./support/until.js";

let baseUrl: string;
let client: Client;
let admin: Admin;
before(async () => {
  baseUrl = (await startServer()).url;
  client = createClient({ baseUrl, apiKey: API_KEY });
  admin = createAdmin({ client });
});

test("tools are listed, called and run for a model's message", async () => {
  assert.equal((await admin.tools.list("openai"))[0].type, "function");
  const scope = "session:tools";
  const { result } = await admin.tools.call("kv_write", { scope, arguments: { key: "name", value: "Ada" } });
  assert.deepEqual(result, { ok: true });
  const toolCalls = [
    { id: "call_1", type: "function", function: { name: "kv_read", arguments: '{"key":"name"}' } },
    { id: "call_2", type: "function", function: { name: "weather", arguments: "{}" } },
  ];
  const { messages, unknown } = await admin.tools.run({ scope, toolCalls, ignoreUnknown: true });
  assert.deepEqual(messages.map(({ tool_call_id }) => tool_call_id), ["call_1"]);
  assert.equal(unknown!.length, 1);
  assert.match((await admin.tools.mcpUrl(scope, { expiresInSeconds: 60 })).url, /^http:\/\/[^/]+\/mcp\?/);
});

test("task lists are set, changed and guarded", async () => {
  const tasks = admin.tasks("session:tasks");
  const { version } = await tasks.set([{ content: "Book", status: "pending", activeForm: "Booking" }]);
  await tasks.update({ index: 0, status: "in_progress" }, { ifVersion: version });
  const list = await tasks.get();
  assert.deepEqual(list.tasks.map(({ content, status, activeForm }) => [content, status, activeForm]), [["Book", "in_progress", "Booking"]]);
  await assert.rejects(tasks.set([], { keepUnfinished: true }), { code: "tasks_unfinished" });
  assert.equal((await admin.scopes.describe("session:tasks")).unfinishedTasks, 1);
  await admin.scopes.clear("session:tasks");
  assert.equal((await admin.scopes.describe("session:tasks")).tasks, 0);
});

test("an ended thread is read and restored", async () => {
  const thread = await client.threads.create({ state: { a: 1 } });
  await thread.history.appendMany([{ id: "x", value: "é" }, { id: "y", value: 2 }]);
  await thread.destroy();
  const id = thread.id!;
  await until("it is archived", () => admin.archives.get(id).then(() => true, () => false));
  const archive = await admin.archives.get(id);
  assert.deepEqual([archive.state, archive.reason, archive.historyCount], [{ a: 1 }, "destroyed", 2]);
  assert.deepEqual((await admin.archives.history(id)).items.map(({ value }) => value), ["é", 2]);
  const parse = (text: string) => JSON.parse(text, (_, value) => (Number.isInteger(value) ? BigInt(value) : value));
  const exact = createAdmin({ baseUrl, apiKey: API_KEY, json: { parse, stringify: (value) => JSON.stringify(value) } });
  const { items, next } = await exact.archives.history(id, { limit: 1 });
  assert.deepEqual([items.map(({ seq }) => seq), next], [[1], 1]);
  assert.ok((await admin.archives.list({ limit: 10 })).items.some((one) => one.id === id));
  await admin.archives.restore(id, { life: archive.life });
  assert.equal(await client.thread(id).get("a"), 1);
});

test("webhooks are created, changed and deleted", async () => {
  const webhook = await admin.webhooks.create({ url: "https://example.com/hook", events: ["thread.destroyed"] });
  assert.match(webhook.secret!, /^whsec_/);
  const changed = await admin.webhooks.update(webhook.id, { events: ["thread.created", "thread.destroyed"] });
  assert.equal(changed.events.length, 2);
  assert.equal((await admin.webhooks.get(webhook.id)).secret ?? undefined, undefined);
  assert.deepEqual((await admin.webhooks.list()).map(({ id }) => id), [webhook.id]);
  assert.deepEqual((await admin.webhooks.failed(webhook.id)).items, []);
  assert.deepEqual(await admin.webhooks.pending(webhook.id), { pending: [], total: 0 });
  assert.equal(await admin.webhooks.replay(webhook.id), 0);
  await admin.webhooks.delete(webhook.id);
  assert.deepEqual(await admin.webhooks.list(), []);
});

test("a thread is assigned to an owner", async () => {
  const thread = await client.threads.create();
  assert.equal((await admin.owners.assign(thread.id!, "ada/1")).owner, "ada/1");
  const { threads, owner } = await admin.owners.get("ada/1");
  assert.deepEqual([threads, owner], [1, "ada/1"]);
  assert.equal((await admin.owners.assign(thread.id!, null)).owner ?? null, null);
});

test("an owner's data is erased", async (t) => {
  if (!(await hasMethod("/v1/owners/{owner}", "delete"))) return t.skip("this server does not erase owners");
  await client.threads.create({ owner: "eve" });
  await client.threads.create({ owner: "eve" });
  assert.equal((await admin.owners.erase("eve")).threads, 2);
  assert.deepEqual((await client.threads.list({ owner: "eve" })).threads, []);
});

test("threads are exported and imported without changes to their values", async (t) => {
  if (!(await serverHas(baseUrl, "/v1/threads/import"))) return t.skip("this server does not export");
  const exact = createClient({ baseUrl, apiKey: API_KEY });
  const thread = await exact.threads.create({ owner: "exporter", state: { a: [1, { b: "é" }] } });
  await thread.increment("big", 9_007_199_254_740_993n);
  const document = await admin.export(thread.id!);
  assert.ok(document.includes("9007199254740993"));
  await assert.rejects(admin.importDocument(document), { code: "thread_exists" });
  assert.equal((await admin.importDocument(document, { ifExists: "skip" })).version, 2);
  assert.equal((await admin.importDocument(document, { ifExists: "replace" })).id, thread.id);
  const documents = [];
  for await (const one of admin.exportAll({ owner: "exporter" })) documents.push(JSON.parse(one));
  assert.equal(documents.length, 1);
});

test("an export returns all readable threads, and then reports the unreadable ones", async () => {
  const lines = [
    '{"format":1,"thread":{"id":"thrd_a"}}',
    '{"error":"unreadable","thread_id":"thrd_b","place":"thrd_b"}',
    '{"format":1,"thread":{"id":"thrd_c"}}',
    '{"complete":true,"failed":1}\n',
  ];
  const fake = async () => new Response(lines.join("\n"));
  const documents = createAdmin({ baseUrl, apiKey: API_KEY, fetch: fake as typeof fetch }).exportAll();
  assert.equal((await documents.next()).value, lines[0]);
  assert.equal((await documents.next()).value, lines[2]);
  await assert.rejects(documents.next(), { code: "unreadable_threads", threadIds: ["thrd_b"] });
});

test("statistics are read", async (t) => {
  if (!(await serverHas(baseUrl, "/v1/stats"))) return t.skip("this server has no statistics");
  assert.equal(typeof (await admin.stats()), "object");
});

test("an API key reads its own name and rights", async () => {
  assert.deepEqual(await admin.apiKey(), { name: "ops", rights: ["all"] });
  const stranger = createAdmin({ baseUrl, apiKey: "unknown" });
  await assert.rejects(stranger.apiKey(), { name: "AuthenticationError", code: "invalid_api_key" });
});

async function hasMethod(path: string, method: string): Promise<boolean> {
  const { paths } = (await (await fetch(baseUrl + "/openapi.json")).json()) as { paths: { [path: string]: object } };
  return method in (paths[path] ?? {});
}
