import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { type Client, ConflictError, createClient, InvalidStateError, NotFoundError, type Thread, threadIdFor, ThreadDestroyedError, TooLargeError, VersionMismatchError } from "threadkeep";
import { z } from "zod";
import { API_KEY, startServer } from "./support/server.js";
import { serverHas } from "./support/server-has.js";
import { pause, withLongerTtls } from "./support/until.js";

let baseUrl: string;
let backEnd: Client;
before(async () => {
  baseUrl = (await startServer()).url;
  backEnd = createClient({ baseUrl, apiKey: API_KEY });
});

const fresh = (): Thread => createClient({ baseUrl }).current();

test("an undefined signed ID, ID, owner or checkpoint is rejected", async () => {
  const undefinedName = undefined as unknown as string;
  const mine = fresh();
  assert.throws(() => backEnd.current({ signedId: undefinedName }), TypeError);
  const calls = [
    () => backEnd.threads.list({ owner: undefinedName }),
    () => backEnd.threads.create({ id: undefinedName }),
    () => backEnd.threads.create({ owner: undefinedName }),
    () => mine.fork({ id: undefinedName }),
    () => mine.fork({ owner: undefinedName }),
    () => mine.fork({ fromCheckpoint: undefined }),
  ];
  for (const call of calls) await assert.rejects(call, TypeError);
});

describe("state", () => {
  test("a write returns a receipt, and reads show it", async () => {
    const thread = fresh();
    const receipt = await thread.set("title", "Trip");
    assert.deepEqual({ ...receipt, etag: "" }, { version: 1, sizeBytes: 16, etag: "", replayed: false });
    assert.match(receipt.etag, /^"1-[0-9a-f]{16}"$/);
    assert.deepEqual(await thread.read(), { state: { title: "Trip" }, version: 1, etag: receipt.etag });
    assert.equal(await thread.get("title"), "Trip");
    assert.match(thread.id!, /^thrd_[0-9a-f]{32}$/);
    assert.ok(thread.signedId!.startsWith(thread.id + ";"));
  });

  test("`get` returns undefined for a missing key, and `has` returns false", async () => {
    const thread = fresh();
    assert.equal(await thread.get("title"), undefined);
    assert.equal(await thread.has("title"), false);
    await thread.set("title", null);
    assert.equal(await thread.get("title"), null);
    assert.equal(await thread.has("title"), true);
  });

  test("a part of an array can be read, and maxRecords limits its length", async () => {
    const thread = fresh();
    for (let index = 0; index < 5; index++) await thread.push("list", index, { maxRecords: 4 });
    assert.deepEqual(await thread.get("list"), [1, 2, 3, 4]);
    assert.deepEqual(await thread.get("list", { tail: 2 }), [3, 4]);
    assert.deepEqual(await thread.get("list", { offset: 1, limit: 2 }), [2, 3]);
    assert.equal((await thread.push("list", 5)).length, 5);
  });

  test("keys that a URL cannot carry work like others", async () => {
    const thread = fresh();
    for (const key of [".", "..", "a/b", "ü ?#%&", "__proto__"]) {
      assert.equal((await thread.set(key, [1, 2])).replayed, false, key);
      assert.equal((await thread.push(key, 3)).length, 3, key);
      assert.deepEqual(await thread.get(key), [1, 2, 3], key);
      assert.deepEqual(await thread.get(key, { tail: 2 }), [2, 3], key);
      assert.deepEqual(await thread.get(key, { offset: 1, limit: 1 }), [2], key);
      assert.equal(await thread.has(key), true, key);
      assert.equal((await thread.delete(key)).deleted, true, key);
      assert.equal(await thread.has(key), false, key);
    }
    await thread.increment(".", 5n);
    assert.equal((await thread.increment(".")).value, 6);
  });

  test("integers are exact to 64 bits", async () => {
    const thread = fresh();
    assert.equal((await thread.increment("n", 41)).value, 41);
    assert.equal((await thread.increment("n")).value, 42);
    const big = 9_007_199_254_740_993n;
    assert.equal((await thread.increment("big", big)).value, big);
    assert.equal((await thread.increment("big", -1n)).value, Number(big - 1n) === 9_007_199_254_740_992 ? big - 1n : 0);
    assert.equal((await thread.increment("big", -1n)).value, 9_007_199_254_740_991);
    const { results } = await thread.merge([
      { op: "set", key: "text", value: '9007199254740993 \\" 9007199254740993' },
      { op: "increment", key: "big", by: 10n },
      { op: "increment", key: "n", by: -2 },
    ]);
    assert.deepEqual(results, [{}, { value: 9_007_199_254_741_001n }, { value: 40 }]);
    assert.equal(await thread.get("text"), '9007199254740993 \\" 9007199254740993');
  });

  test("a merge performs all operations or none, and reports the failed operation", async () => {
    const thread = fresh();
    const { results, version } = await thread.merge([
      { op: "set", key: "a", value: 1 },
      { op: "push", key: "list", value: "x" },
      { op: "push", key: "list", value: "y" },
      { op: "pop", key: "list" },
      { op: "delete", key: "none" },
      { op: "append", id: "turn-1", value: { role: "user" } },
    ]);
    assert.equal(version, 1);
    assert.deepEqual(results, [{}, { length: 1 }, { length: 2 }, { values: ["y"] }, { deleted: false }, { id: "turn-1", seq: 1, repeated: false }]);
    const failed = thread.merge([{ op: "set", key: "b", value: 1 }, { op: "increment", key: "list" }]);
    await assert.rejects(failed, (error) => error instanceof ConflictError && error.code === "not_an_integer" && error.operation === 1);
    assert.deepEqual(await thread.keys(), ["a", "list"]);
  });

  test("patches, replacements and clearing", async () => {
    const thread = fresh();
    await thread.replace({ a: { b: 1, c: 2 }, d: 3 });
    await thread.patch({ a: { b: null, e: 4 }, d: null });
    assert.deepEqual((await thread.read()).state, { a: { c: 2, e: 4 } });
    await thread.clear();
    assert.deepEqual((await thread.read()).state, {});
  });

  test("a read can be limited to keys, and a read of no keys returns the version", async () => {
    const thread = fresh();
    await thread.replace({ a: 1, b: 2, c: 3 });
    assert.deepEqual((await thread.read({ keys: ["a", "c", "x"] })).state, { a: 1, c: 3 });
    const none = await thread.read({ keys: [] });
    assert.deepEqual([none.state, none.version], [{}, 1]);
  });

  test("conditions take a version, an ETag or an asterisk", async () => {
    const thread = fresh();
    const { etag } = await thread.set("a", 1, { ifMatch: 0 });
    await thread.set("a", 2, { ifMatch: etag });
    await thread.set("a", 3, { ifMatch: 2 });
    await thread.set("a", 4, { ifMatch: "*" });
    const late = thread.set("a", 5, { ifMatch: etag });
    await assert.rejects(late, (error) => error instanceof VersionMismatchError && error.currentVersion === 4);
    await assert.rejects(fresh().set("a", 1, { ifMatch: "*" }), VersionMismatchError);
  });

  test("an idempotency key performs a write once", async () => {
    const thread = fresh();
    await thread.push("list", 1, { idempotencyKey: "once" });
    assert.equal((await thread.push("list", 1, { idempotencyKey: "once" })).replayed, true);
    assert.deepEqual(await thread.get("list"), [1]);
    await assert.rejects(thread.push("list", 2, { idempotencyKey: "once" }), { name: "ReusedError", code: "idempotency_key_reused" });
  });

  test("the first write sets the TTL", async () => {
    const thread = fresh();
    await thread.push("list", 1, { ttlSeconds: 86_400 });
    assert.equal((await thread.info()).ttlSeconds, 86_400);
    const { ttlSeconds, metadata } = await thread.configure({ ttlSeconds: 100, metadata: { title: "Trip" } });
    assert.deepEqual([ttlSeconds, metadata], [100, { title: "Trip" }]);
  });

  test("concurrent updates of a value lose nothing", async () => {
    const { id } = await backEnd.threads.create({ state: { list: [] } });
    const writers = [0, 1, 2].map((writer) => createClient({ baseUrl, apiKey: API_KEY }).thread(id!).update("list", async ({ list }) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return [{ op: "set", key: "list", value: [...(list ?? []), writer] }];
    }));
    await Promise.all(writers);
    assert.deepEqual((await backEnd.thread(id!).get("list")).sort(), [0, 1, 2]);
    assert.equal(await backEnd.thread(id!).update("list", () => undefined), undefined);
    assert.equal((await fresh().update("a", () => [{ op: "set", key: "a", value: 1 }]))?.version, 1);
  });

  test("a schema validates whole reads and returns its output", async () => {
    const schema = z.object({ count: z.number().default(7) });
    const thread = createClient({ baseUrl }).current({ schema });
    assert.deepEqual((await thread.read()).state, { count: 7 });
    await (thread as unknown as Thread).set("count", "seven");
    await assert.rejects(thread.read(), (error) => error instanceof InvalidStateError && error.code === "invalid_state" && error.issues.length === 1 && !error.stack!.includes("seven"));
    assert.equal(await thread.get("count"), "seven");
  });

  test("an application's own JSON reads and writes the values", async () => {
    const json = {
      parse: (text: string) => JSON.parse(text, (_, value) => (typeof value === "string" && /^n\d+$/.test(value) ? BigInt(value.slice(1)) : value)),
      stringify: (value: unknown) => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `n${one}` : one)),
    };
    const thread = createClient({ baseUrl, json }).current();
    await thread.set("big", 12n);
    await thread.push("list", 13n);
    assert.equal(await thread.get("big"), 12n);
    assert.deepEqual((await thread.read()).state, { big: 12n, list: [13n] });
    assert.deepEqual((await thread.merge([{ op: "pop", key: "list" }])).results, [{ values: [13n] }]);
    await thread.history.append({ id: "a", value: 14n as never });
    assert.deepEqual((await thread.history.page()).items.map(({ value }) => value), [14n]);
  });

  test("a write that exceeds the size limit changes nothing", async () => {
    const thread = fresh();
    await thread.set("a", 1);
    const large = thread.set("b", "x".repeat(1_100_000));
    await assert.rejects(large, (error) => error instanceof TooLargeError && error.limitBytes === 1_048_576 && error.attemptedBytes! > 1_100_000);
    assert.deepEqual((await thread.read()).state, { a: 1 });
  });

  test("a value that JSON cannot express is not sent", async () => {
    const thread = fresh();
    await assert.rejects(thread.set("a", (() => 1) as never), TypeError);
    assert.equal(thread.id, undefined);
  });
});

describe("threads", () => {
  test("a name has the same ID in both clients", async () => {
    const vectors = JSON.parse(readFileSync(join(process.env["REPOSITORY"]!, "clients/thread-ids.json"), "utf8")) as Record<"name" | "space" | "id", string>[];
    for (const { name, space, id } of vectors) assert.equal(await threadIdFor(name, space), id);
    assert.equal(await threadIdFor("user 7"), await threadIdFor("user 7", ""));
    const id = await threadIdFor("user 7");
    assert.equal((await backEnd.threads.create({ id, state: { a: 1 } })).id, id);
    await assert.rejects(backEnd.threads.create({ id }), { name: "ConflictError", code: "thread_exists" });
  });

  test("destroying ends a thread, and current() continues with a new one", async () => {
    const thread = fresh();
    await thread.set("a", 1);
    const { id, signedId } = thread;
    await thread.destroy();
    assert.notEqual(thread.id, id);
    await thread.set("b", 2);
    assert.deepEqual((await thread.read()).state, { b: 2 });
    const late = createClient({ baseUrl, signedId }).current().set("a", 1);
    await assert.rejects(late, (error) => error instanceof ThreadDestroyedError && error.code === "thread_destroyed");
  });

  test("a rotated thread keeps its state and the object follows it", async () => {
    const thread = fresh();
    await thread.set("a", 1);
    const { id } = thread;
    const info = await thread.rotate();
    assert.notEqual(info.id, id);
    assert.equal(thread.id, info.id);
    assert.equal(await thread.get("a"), 1);
    const named = backEnd.thread(info.id);
    const next = await named.rotate();
    assert.equal(named.id, next.id);
    assert.equal(await named.get("a"), 1);
  });

  test("a client with a signed ID opens its own thread by ID", async () => {
    const thread = fresh();
    await thread.set("a", 1);
    const client = createClient({ baseUrl, signedId: thread.signedId });
    assert.equal(await client.thread(thread.id!).get("a"), 1);
    await assert.rejects(client.thread("thrd_" + "0".repeat(32)).get("a"), { name: "AuthenticationError", code: "api_key_required" });
  });

  test("a thread that was created without an API key is accessible with its signed ID", async () => {
    const thread = await createClient({ baseUrl }).threads.create({ state: { a: 1 } });
    assert.equal(await thread.get("a"), 1);
    assert.ok(thread.signedId);
  });

  test("lists have pages, owners and filters", async () => {
    const owner = `ada ${Math.random()}`;
    for (const title of ["one", "two", "three"]) {
      await backEnd.threads.create({ owner, metadata: { title } });
      // threads created in the same millisecond would be sorted by ID
      await pause(2);
    }
    const first = await backEnd.threads.list({ owner, limit: 2, order: "created" });
    assert.deepEqual(first.threads.map(({ metadata }) => metadata["title"]), ["three", "two"]);
    const second = await backEnd.threads.list({ owner, limit: 2, order: "created", cursor: first.next });
    assert.deepEqual(second.threads.map(({ metadata }) => metadata["title"]), ["one"]);
    assert.equal(second.next, undefined);
    const filtered = await backEnd.threads.list({ owner, metadata: { title: "two" } });
    assert.deepEqual(filtered.threads.map(({ metadata, owner }) => [metadata["title"], owner]), [["two", owner]]);
  });

  test("checkpoints save and restore", async () => {
    const thread = fresh();
    await thread.set("a", 1);
    const { checkpoint } = await thread.checkpoints.create({ name: "before" });
    await thread.set("a", 2);
    assert.deepEqual((await thread.checkpoints.list()).map(({ name }) => name), ["before"]);
    assert.deepEqual((await thread.checkpoints.get(checkpoint)).state, { a: 1 });
    assert.equal((await thread.checkpoints.restore(checkpoint)).version, 3);
    assert.equal(await thread.get("a"), 1);
    await thread.checkpoints.delete(checkpoint);
    assert.deepEqual(await thread.checkpoints.list(), []);
  });

  test("a history grows, pages and shrinks", async () => {
    const { history } = fresh();
    const items = Array.from({ length: 130 }, (_, index) => ({ id: `i${index}`, value: { index } }));
    await history.appendMany(items.slice(0, 100));
    await history.appendMany(items.slice(100));
    assert.deepEqual(await history.append(items[3]!), { id: "i3", seq: 4, repeated: true });
    await assert.rejects(history.append({ id: "i3", value: 0 }), { name: "ReusedError", code: "item_id_reused" });
    const page = await history.page({ limit: 2, order: "desc" });
    assert.deepEqual(page.items.map(({ seq }) => seq), [130, 129]);
    assert.deepEqual((await history.page({ tail: 2 })).items.map(({ seq }) => seq), [129, 130]);
    assert.deepEqual((await history.latest(2)).map(({ seq }) => seq), [129, 130]);
    assert.deepEqual([(await history.latest(200)).length, (await history.latest(0)).length], [130, 0]);
    const all = [];
    for await (const { value } of history.items()) all.push(value);
    assert.deepEqual(all, items.map(({ value }) => value));
    assert.deepEqual((await history.take(2)).map(({ id }) => id), ["i128", "i129"]);
    await history.delete("i0");
    assert.equal((await history.page({ limit: 1 })).items[0]!.id, "i1");
    await history.clear();
    assert.deepEqual((await history.page()).items, []);
    await assert.rejects(history.delete(""), TypeError);
  });

  test("a fork is a thread of its own", async (t) => {
    if (!(await serverHas(baseUrl, "/v1/threads/current/fork"))) return t.skip("this server has no forks");
    const thread = fresh();
    await thread.set("a", 1);
    const { id } = thread;
    const copy = await thread.fork({ metadata: { title: "copy" } });
    await copy.set("a", 2);
    assert.equal(thread.id, id);
    assert.deepEqual([await thread.get("a"), await copy.get("a")], [1, 2]);
    assert.equal((await backEnd.thread(copy.id!).info()).metadata["forked_from"].thread_id, id);
  });
});

describe("turns", () => {
  test("an exclusive turn blocks other writers, is renewed, and can be released", async () => {
    await withLongerTtls(async (ttlSeconds) => {
      const thread = await backEnd.threads.create();
      const turn = await thread.turn({ ttlSeconds, exclusive: true });
      await assert.rejects(thread.set("a", 1), (error) => error instanceof ConflictError && error.code === "turn_taken" && !!error.expiresAt);
      await turn.thread.set("a", 2);
      await pause(1_500 * ttlSeconds);
      await turn.thread.set("a", 3);
      assert.equal(turn.signal.aborted, false);
      const { held, exclusive } = await thread.turnState();
      assert.deepEqual([held, exclusive], [true, true]);
      await turn.release();
      assert.equal((await thread.turnState()).held, false);
      await thread.set("a", 4);
      const later = await thread.turn();
      await assert.rejects(turn.thread.set("a", 5), { code: "turn_lost" });
      await later.release();
      await turn.release();
    });
  });

  test("a waiting caller gets the turn when it is free", async () => {
    const thread = await backEnd.threads.create();
    const turn = await thread.turn();
    await assert.rejects(thread.turn(), { code: "turn_taken" });
    const waiting = thread.turn({ waitSeconds: 30 });
    await turn.release();
    await (await waiting).release();
  });

  test("the signal of a turn is aborted when the turn is lost", async () => {
    const thread = await backEnd.threads.create();
    const turn = await thread.turn({ ttlSeconds: 1 });
    await thread.destroy();
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    assert.equal(turn.signal.reason.status >= 404, true);
    await turn.release();
  });

  test("a checkpoint of a missing thread is not created", async () => {
    await assert.rejects(fresh().checkpoints.create(), NotFoundError);
  });
});
