import { randomUUID } from "node:crypto";
import Keyv from "keyv";
import { KeyvThreadkeep } from "threadkeep/keyv";
import { expect, it } from "vitest";
import { client, options } from "./support/servers.mjs";

const newStore = () => `keyv-${randomUUID()}`;

it("expires values", async () => {
  const store = newStore();
  const keyv = new Keyv({ store: new KeyvThreadkeep(options(0, { store })), namespace: "n" });
  const before = Date.now();
  await keyv.set("short", 1, 300);
  await keyv.set("long", 1, 90_500);
  await keyv.set("forever", 1, 0);
  await keyv.setMany([{ key: "alone", value: 1, ttl: 90_500 }]);
  const after = Date.now();
  await expect.poll(() => keyv.get("short")).toBeUndefined();

  expect(await keyv.get(["short", "long", "forever"])).toEqual([undefined, 1, 1]);
  expect(await keyv.has("short")).toBe(false);
  const end = async (key) => Date.parse((await client().kv(store).get(key))?.expiresAt);
  for (const key of ["n:long", "n:alone"]) {
    expect(await end(key)).toBeGreaterThan(before + 90_000);
    expect(await end(key)).toBeLessThan(after + 92_000);
  }
  expect(await end("n:forever")).toBeNaN();
});

it("reports an unreachable server as an error instead of a miss", async () => {
  const keyv = new Keyv({ store: new KeyvThreadkeep({ ...options(), baseUrl: "http://127.0.0.1:1", attempts: 1 }) });
  const errors = [];
  keyv.on("error", (error) => errors.push(error.code));

  expect(await keyv.get("a")).toBeUndefined();
  expect(await keyv.set("a", 1)).toBe(false);

  expect(errors).toContain("connection");
  await expect(keyv.get(["a", "b"])).rejects.toMatchObject({ code: "connection" });
  const strict = new Keyv({ store: new KeyvThreadkeep({ ...options(), baseUrl: "http://127.0.0.1:1", attempts: 1 }), throwOnErrors: true });
  strict.on("error", () => {});
  await expect(strict.get("a")).rejects.toMatchObject({ code: "connection" });
});

it("sets and reads many values", async () => {
  const keyv = new Keyv({ store: new KeyvThreadkeep(options(0, { store: newStore() })) });
  const entries = Array.from({ length: 250 }, (_, index) => ({ key: `key-${index}`, value: "x".repeat(index * 20) }));

  expect(await keyv.setMany(entries)).toEqual(entries.map(() => true));

  expect(await keyv.getMany(entries.map(({ key }) => key))).toEqual(entries.map(({ value }) => value));
  const found = [];
  for await (const [key] of keyv.iterator()) found.push(key);
  expect(found.toSorted()).toEqual(entries.map(({ key }) => key).toSorted());
  await keyv.clear();
  expect(await keyv.get("key-1")).toBeUndefined();
});

it("rejects `setMany` if one value is too large", async () => {
  const keyv = new Keyv({ store: new KeyvThreadkeep(options(0, { store: newStore() })), throwOnErrors: true });
  keyv.on("error", () => {});
  const entries = [{ key: "a", value: "x" }, { key: "b", value: "x".repeat(1_100_000) }];
  await expect(keyv.setMany(entries)).rejects.toMatchObject({ name: "TooLargeError" });
});

it("keeps values as objects without a serializer", async () => {
  const keyv = new Keyv({ store: new KeyvThreadkeep(options(0, { store: newStore() })) });
  keyv.serialize = undefined;
  keyv.deserialize = undefined;
  await keyv.set("a", { b: [1, null] });
  expect(await keyv.get("a")).toEqual({ b: [1, null] });
});

it("clears everything only without a namespace", async () => {
  const store = newStore();
  const adapter = new KeyvThreadkeep(options(0, { store }));
  const named = new Keyv({ store: new KeyvThreadkeep(options(0, { store })), namespace: "named" });
  await named.set("a", 1);
  await adapter.set("free", "1");

  await named.clear();
  expect(await adapter.get("free")).toBe("1");
  await adapter.clear();
  expect(await adapter.get("free")).toBeUndefined();
});
