import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Client, createClient } from "threadkeep";
import { createAdmin } from "threadkeep/admin";
import { API_KEY, startServer } from "./support/server.js";

let client: Client;
before(async () => {
  client = createClient({ baseUrl: (await startServer()).url, apiKey: API_KEY });
});

test("entries keep bytes, texts and JSON, each with its type", async () => {
  const kv = client.kv("types");
  await kv.put("bytes", new Uint8Array([0, 255, 13]));
  await kv.put("text", "\uFEFFé");
  await kv.put("json", { a: [1, null] });
  await kv.put("own", "<p>", { contentType: "text/html" });
  assert.deepEqual((await kv.get("bytes"))!.bytes, new Uint8Array([0, 255, 13]));
  assert.equal((await kv.get("text"))!.text(), "\uFEFFé");
  assert.deepEqual((await kv.get("json"))!.json(), { a: [1, null] });
  assert.deepEqual([(await kv.get("json"))!.contentType, (await kv.get("own"))!.contentType], ["application/json", "text/html"]);
  assert.equal(await kv.get("none"), undefined);
});

test("puts can be conditional, and report whether they stored the entry", async () => {
  const kv = client.kv("conditions");
  const first = await kv.put("a", "1", { ifAbsent: true, ttlSeconds: 100 });
  assert.deepEqual([first.ok, first.version], [true, 1]);
  assert.ok((await kv.get("a"))!.expiresAt);
  assert.deepEqual(await kv.put("a", "2", { ifAbsent: true }), { ok: false });
  await kv.put("a", "3", { ifMatch: first.etag });
  await assert.rejects(kv.put("a", "4", { ifMatch: first.etag }), { name: "VersionMismatchError" });
  await assert.rejects(kv.delete("a", { ifMatch: first.etag }), { name: "VersionMismatchError" });
  assert.equal(await kv.delete("a"), true);
  assert.equal(await kv.delete("a"), false);
});

test("keys are listed by prefix, page by page, and a namespace is cleared", async () => {
  const kv = client.kv("lists");
  const { kv: batches } = createAdmin({ client });
  const entries = Array.from({ length: 150 }, (_, index) => ({ key: `k/${String(index).padStart(3, "0")}`, body: `${index}` }));
  const outcomes = [...(await batches("lists").putMany(entries.slice(0, 100))), ...(await batches("lists").putMany(entries.slice(100)))];
  assert.ok(outcomes.every(({ ok }) => ok));
  await kv.put("other", "x");
  const keys = [];
  for await (const key of kv.keys("k/")) keys.push(key);
  assert.deepEqual(keys, entries.map(({ key }) => key));
  const page = await kv.page({ prefix: "k/", limit: 2 });
  assert.deepEqual(page.keys.map(({ key, sizeBytes }) => [key, sizeBytes]), [["k/000", 1], ["k/001", 1]]);
  assert.equal(await kv.clear(), 151);
  assert.deepEqual((await kv.page()).keys, []);
});

test("several entries are put, read and paged with their bodies", async () => {
  const kv = createAdmin({ client }).kv("batches");
  await kv.configure({ idleTtlSeconds: 3_600 });
  const outcomes = await kv.putMany([{ key: "a", body: "é" }, { key: "b", body: new Uint8Array([255]) }, { key: "c", body: { x: 1 } }]);
  assert.deepEqual(outcomes.map(({ key, ok }) => [key, ok]), [["a", true], ["b", true], ["c", true]]);
  const [again] = await kv.putMany([{ key: "a", body: "no", ifAbsent: true }]);
  assert.deepEqual([again!.ok, again!.code], [false, "version_mismatch"]);
  const found = await kv.getMany(["a", "b", "c", "none"]);
  assert.deepEqual([...found.keys()].sort(), ["a", "b", "c"]);
  assert.deepEqual([found.get("a")!.text(), found.get("b")!.bytes[0], found.get("c")!.json()], ["é", 255, { x: 1 }]);
  const { entries } = await kv.entries({ order: "desc", limit: 2 });
  assert.deepEqual(entries.map(({ key, bytes }) => [key, bytes.length]), [["c", 7], ["b", 1]]);
  assert.equal((await createAdmin({ client }).namespaces({ namespace: "batches" })).items[0]!.idleTtlSeconds, 3_600);
});

test("`getMany` reads more entries than one response holds", async () => {
  const kv = createAdmin({ client }).kv("large");
  const keys = ["a", "b", "c", "d"];
  for (const key of keys) await kv.put(key, key.repeat(900_000));
  const found = await kv.getMany(keys);
  assert.deepEqual([...found.values()].map(({ bytes }) => bytes.length), [900_000, 900_000, 900_000, 900_000]);
});

test("scopes keep texts, counters and conditions", async () => {
  const scope = client.scope("session:ada");
  const { version } = await scope.set("name", "Ada");
  assert.equal((await scope.set("name", "Eve", { ifAbsent: true })).ok, false);
  await assert.rejects(scope.set("name", "Eve", { ifVersion: version + 1 }), { name: "VersionMismatchError" });
  assert.equal((await scope.set("name", "Ada L.", { ifVersion: version, ttlSeconds: 100 })).ok, true);
  assert.deepEqual([await scope.get("name"), await scope.get("none")], ["Ada L.", null]);
  assert.deepEqual(await scope.getMany(["name", "none"]), { name: "Ada L.", none: null });
  assert.deepEqual(await scope.getMany([]), {});
  assert.equal(await scope.increment("visits"), 1);
  assert.equal(await scope.increment("visits", 9_007_199_254_740_993n), 9_007_199_254_740_994n);
  assert.deepEqual([await scope.keys(), await scope.keys("v")], [["name", "visits"], ["visits"]]);
  assert.deepEqual([await scope.delete("name"), await scope.delete("name")], [true, false]);
  await scope.end();
  assert.deepEqual(await scope.keys(), []);
});

test("a caller without an API key has the scope of its own thread", async () => {
  const own = createClient({ baseUrl: (await startServer()).url });
  const thread = own.current();
  await Promise.all([own.scope("thread:current").set("a", "1"), thread.set("b", 2)]);
  assert.equal(await own.scope("thread:current").get("a"), "1");
  assert.equal(await own.scope(`thread:${thread.id}`).get("a"), "1");
});
