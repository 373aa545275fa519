// Tests that the key-value store meets Ethos's requirements, and throws errors in the same cases as Ethos's own store.

import { randomUUID } from "node:crypto";
import { createKvStoreFactory } from "threadkeep/ethos";
import { expect, it } from "vitest";
import { client, options, unique } from "./support/servers.mjs";

const factory = createKvStoreFactory(options());
const replica = createKvStoreFactory(options(1));

it("returns a store synchronously", () => {
  expect(factory("notes", "tool:notes")).not.toBeInstanceOf(Promise);
});

it("keeps any text under any key", async () => {
  const store = factory("notes", `tool:${unique("keys")}`);
  const keys = ["", "a:b", "line\nbreak", "ü", "\u0000", ".", "__proto__", "k".repeat(1_024)];
  for (const key of keys) await store.set(key, `value of ${key}`);

  for (const key of keys) expect(await store.get(key)).toBe(`value of ${key}`);
  expect((await store.list("")).toSorted()).toEqual(keys.toSorted());
});

it("deletes keys, including missing keys", async () => {
  const store = factory("notes", `tool:${unique("delete")}`);
  await store.set("a", "1");
  expect(await store.delete("a")).toBeUndefined();
  await store.delete("a");
  expect(await store.get("a")).toBeNull();
});

it("lists keys by a case-sensitive prefix", async () => {
  const store = factory("notes", `session:${unique("list")}`);
  for (const key of ["abc", "abd", "ABC", "b"]) await store.set(key, "1");
  expect(await store.list("ab")).toEqual(["abc", "abd"]);
});

it("expires values after their own TTL, or after the TTL of the tool", async () => {
  const scope = `tool:${unique("ttl")}`;
  const store = factory("notes", scope, { ttlSecondsDefault: 1 });
  let start;
  let found;
  do {
    start = performance.now();
    await store.set("default", "1");
    found = await store.get("default");
    // retries if the machine paused, because the value may have expired during the pause
  } while (performance.now() - start > 900);
  expect(found).toBe("1");
  await store.set("longer", "1", { ttlSeconds: 100 });
  const plain = factory("notes", scope);
  await plain.set("cleared", "1", { ttlSeconds: 1 });
  await plain.set("cleared", "2");

  await expect.poll(() => store.get("default")).toBeNull();

  expect(await store.list("")).toEqual(["cleared", "longer"]);
});

it.each([0, -1, 0.5, Number.NaN])("rejects a TTL of %s", async (ttlSeconds) => {
  const store = factory("notes", `tool:${unique("ttl")}`);
  await expect(store.set("a", "1", { ttlSeconds })).rejects.toThrow(RangeError);
  expect(() => factory("notes", "tool:notes", { ttlSecondsDefault: ttlSeconds })).toThrow(RangeError);
});

it("shares a session among tools unless `shared` is false, and never with a personality", async () => {
  const id = unique("shared");
  await factory("one", `session:${id}`).set("a", "1");
  expect(await replica("two", `session:${id}`).get("a")).toBe("1");
  expect(await factory("two", `personality:${id}`).get("a")).toBeNull();

  const separate = createKvStoreFactory({ ...options(), shared: false });
  await separate("one", `session:${id}`).set("b", "1");
  await separate("one/b", `session:${id}`).set("c", "2");
  expect(await separate("two", `session:${id}`).list("")).toEqual([]);
  expect(await separate("one", `session:${id}`).list("")).toEqual(["b"]);
  expect(await separate("one/b", `session:${id}`).list("")).toEqual(["c"]);
});

it("is empty after the session has ended", async () => {
  const id = randomUUID();
  const store = factory("one", `session:${id}`);
  await store.set("a", "1");
  await client().scope(`session:${id}`).end();
  expect(await store.list("")).toEqual([]);
});

it("keeps scopes with long names separate", async () => {
  const [a, b] = ["a", "b"].map((end) => factory("notes", `personality:${"ü".repeat(400)}${randomUUID()}${end}`));
  await a.set("key", "a");
  expect(await b.get("key")).toBeNull();
  expect(await a.get("key")).toBe("a");
});

it("increments exactly and sets a key once when two stores write concurrently", async () => {
  const id = unique("counters");
  const stores = [factory("one", `session:${id}`), replica("two", `session:${id}`)];

  await Promise.all(Array.from({ length: 20 }, (_, index) => stores[index % 2].increment("count")));
  const outcomes = await Promise.all(stores.map((store, index) => store.setIfAbsent("lock", String(index))));

  expect(await stores[0].get("count")).toBe("20");
  expect(await stores[0].increment("count", 9_007_199_254_740_993n)).toBe(9_007_199_254_741_013n);
  expect(outcomes.filter(Boolean)).toHaveLength(1);
  expect(await stores[0].get("lock")).toBe(String(outcomes.indexOf(true)));
});

it("rejects a scope that Ethos does not have", () => {
  for (const scopeId of ["", "tool:", "thread:current", "x"]) expect(() => factory("notes", scopeId)).toThrow(TypeError);
});
