// Tests all key-value storage calls of an app in two processes.

import assert from "node:assert/strict";

import { request } from "./visitor.mjs";

const DAY = 86_400;
const MISSING = { exists: false };

// Asks the app to make a key-value call. Returns { result } or { error }.
async function attempt(app, ...call) {
  const response = await request(`${app.url}/api/kv`, { method: "POST", body: call });
  return response.json();
}

async function call(app, ...call) {
  const { result, error } = await attempt(app, ...call);
  assert.equal(error, undefined, `${call.slice(0, 3)}: ${error}`);
  return result;
}

// Returns the number of seconds until an entry expires, or undefined if it never expires.
async function secondsLeft(app, namespace, key) {
  const { expiresAt } = await call(app, "get", namespace, key);
  return expiresAt && (Date.parse(expiresAt) - Date.now()) / 1000;
}

function assertNear(seconds, expected) {
  assert.ok(Math.abs(seconds - expected) < 30, `${seconds} s left, expected about ${expected}`);
}

export const kv = [
  ["one process sets entries of all types, and the other reads them", async ({ apps: [a, b] }) => {
    const bytes = { bytes: Buffer.from([0, 255, 10, 13, 128]).toString("base64") };
    const entries = [
      ["text", "hello, wörld", "hello, wörld", "text/plain"],
      ["object", { a: [], b: {} }, { a: [], b: {} }, "application/json"],
      ["number", 1.5, 1.5, "application/json"],
      ["bytes", bytes, bytes, "application/octet-stream"],
      ["a/b c%?#😀", "odd", "odd", "text/plain"],
      ["42", "a name like a time", "a name like a time", "text/plain"],
    ];
    for (const [key, value, got, type] of entries) {
      await call(a, "set", "types/of-é", key, value);
      const { data, contentType, exists } = await call(b, "get", "types/of-é", key);
      assert.deepEqual([data, exists], [got, true], key);
      assert.ok(contentType.startsWith(type), `${key}: ${contentType}`);
    }
    await call(a, "set", "types/of-é", "page", "<p>", { contentType: "text/html" });
    assert.equal((await call(b, "get", "types/of-é", "page")).contentType, "text/html");
    const keys = await call(a, "getKeys", "types/of-é");
    assert.deepEqual(keys.sort(), [...entries.map(([key]) => key), "page"].sort());
    for (const key of [...entries.map(([key]) => key), "never there"]) {
      await call(b, "delete", "types/of-é", key);
      assert.deepEqual(await call(a, "get", "types/of-é", key), MISSING);
    }
    assert.deepEqual(await call(a, "getKeys", "types/of-é"), ["page"]);
  }],

  ["an entry expires after its own TTL or the default of its namespace", async ({ apps: [a, b] }) => {
    const set = (params) => call(a, "set", "times", "key", "value", params);
    const times = [[undefined, 7 * DAY], [30, 60], [3600, 3600], [2e9, 365 * DAY]];
    for (const [ttl, expected] of times) {
      await set(ttl && { ttl });
      assertNear(await secondsLeft(b, "times", "key"), expected);
    }
    for (const ttl of [null, 0]) {
      await set({ ttl });
      assert.equal(await secondsLeft(b, "times", "key"), undefined);
    }
    await call(a, "createNamespace", "short", { defaultTTLSeconds: 120 });
    await call(a, "createNamespace", "for-ever", { defaultTTLSeconds: 0 });
    await call(a, "createNamespace", "usual");
    const namespaces = { short: 120, "for-ever": undefined, usual: 7 * DAY };
    for (const [namespace, expected] of Object.entries(namespaces)) {
      await call(b, "set", namespace, "key", "value");
      const seconds = await secondsLeft(a, namespace, "key");
      expected === undefined ? assert.equal(seconds, undefined) : assertNear(seconds, expected);
    }
  }],

  ["namespaces can be searched, counted, listed and deleted", async ({ apps: [a, b] }) => {
    for (const n of [1, 2, 3]) await call(a, "set", "books", `book ${n}`, { n });
    await call(a, "set", "books", "note", "a text");
    const found = await call(b, "search", "books", "book");
    assert.deepEqual(Object.keys(found).sort(), ["book 1", "book 2", "book 3"]);
    assert.deepEqual(found["book 2"].value, { n: 2 });
    assert.equal(found["book 2"].size, 7);
    assert.equal((await call(b, "search", "books", "not")).note.value, "a text");

    const { sum, count } = await call(b, "getStats", "books");
    assert.deepEqual({ sum, count }, { sum: 3 * 7 + 6, count: 4 });
    assert.equal((await call(b, "getAllStats")).books.count, 4);
    const query = { name: "boo", limit: 1, sort: "name", direction: "asc" };
    const { namespaces, ...page } = await call(b, "getAllStats", query);
    assert.deepEqual(page, { total: 1, limit: 1, offset: 0, hasMore: false });
    assert.equal(namespaces.books.sum, 27);

    await call(a, "createNamespace", "newest");
    assert.equal((await call(b, "getNamespaces"))[0], "newest");
    await call(a, "deleteNamespace", "books");
    await call(a, "deleteNamespace", "newest");
    assert.deepEqual(await call(b, "get", "books", "note"), MISSING);
    const rest = await call(b, "getNamespaces");
    assert.ok(!rest.includes("books") && !rest.includes("newest"), `${rest}`);
  }],

  ["an invalid write is rejected with a reason, and changes nothing", async ({ apps: [a, b] }) => {
    await call(a, "set", "limits", "key", "small");
    const { error } = await attempt(a, "set", "limits", "key", "x".repeat(1_048_577));
    assert.match(error, /^413: .*1048576/);
    assert.equal((await call(b, "get", "limits", "key")).data, "small");
    const { error: reason } = await attempt(a, "set", "white space", "key", "value");
    assert.match(reason, /^400: .*white space/);
    assert.deepEqual(await call(b, "get", "white-space", "key"), MISSING);
  }],

  ["the app and /v1/kv access the same entries", async ({ apps: [a], url, key }) => {
    const headers = { authorization: `Bearer ${key}` };
    await call(a, "set", "shared", "from the app", { n: 1 });
    const response = await request(`${url}/v1/kv/shared/from%20the%20app`, { headers });
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(await response.text(), '{"n":1}');
    await request(`${url}/v1/kv/shared/from%20v1`, { method: "PUT", headers, body: [2] });
    assert.deepEqual((await call(a, "get", "shared", "from v1")).data, [2]);
  }],
];
