import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { inspect } from "node:util";
import { type Client, ConnectionError, createClient, ThreadkeepError, TimeoutError, UnavailableError } from "threadkeep";
import { type Fault, type Proxy, startProxy } from "./support/proxy.js";
import { API_KEY, startServer } from "./support/server.js";
import { gate, pause, until, withLongerTtls } from "./support/until.js";

let proxy: Proxy;
let backEnd: Client;
before(async () => {
  const { url } = await startServer();
  proxy = await startProxy(url);
  backEnd = createClient({ baseUrl: proxy.url, apiKey: API_KEY });
});

function faults(...list: (Fault | undefined)[]): void {
  proxy.requests.length = 0;
  proxy.fault = () => list.shift();
}

async function startThread(options: object = {}) {
  proxy.fault = () => undefined;
  const thread = createClient({ baseUrl: proxy.url, ...options }).current();
  await thread.set("ready", true);
  return thread;
}

describe("retries", () => {
  for (const [name, fault] of Object.entries<Fault>({
    "a connection that breaks": { drop: true },
    "a lost response": { loseResponse: true },
    "503 without Retry-After": { status: 503 },
    "503 with Retry-After": { status: 503, headers: { "retry-after": "0" } },
    "429": { status: 429, headers: { "retry-after": "0" } },
    "408": { status: 408 },
    "502": { status: 502, body: "<html>bad gateway</html>" },
    "504": { status: 504 },
    "a body that is cut": { cutInCharacter: true },
  })) {
    test(`a write is retried and performed once after ${name}`, async () => {
      const thread = await startThread();
      faults(fault, fault, fault);
      const receipt = await thread.push("list", "é");
      assert.equal(receipt.length, 1);
      const keys = new Set(proxy.requests.map(({ headers }) => headers["idempotency-key"]));
      assert.equal(keys.size, 1);
      faults(fault);
      assert.deepEqual(await thread.get("list"), ["é"]);
    });
  }

  test("a request that hangs is retried after timeoutMs", async () => {
    const thread = await startThread({ timeoutMs: 1_000, attempts: 30 });
    proxy.answeredRequests.length = 0;
    const isPerformed = () => until("the write is performed", () => proxy.answeredRequests.length);
    let requests = 0;
    proxy.fault = () => (requests++ ? { after: isPerformed() } : { hang: true });
    assert.deepEqual([(await thread.push("list", 1)).replayed, await thread.get("list")], [true, [1]]);
  });

  test("the last error is thrown after all attempts", async () => {
    const thread = await startThread({ attempts: 3 });
    faults({ status: 503 }, { status: 503 }, { status: 503 });
    await assert.rejects(thread.set("a", 1), (error) => error instanceof UnavailableError && error.code === "unknown");
    assert.equal(proxy.requests.length, 3);
    const unreachable = createClient({ baseUrl: "http://127.0.0.1:9", attempts: 2 }).current();
    await assert.rejects(unreachable.read(), (error) => error instanceof ConnectionError && error.code === "connection" && !!error.cause);
    faults({ hang: true });
    await assert.rejects(thread.read({ timeoutMs: 100 }).then(() => thread.read({ timeoutMs: 0 })), TimeoutError);
  });

  test("other statuses are not retried", async () => {
    const thread = await startThread();
    for (const status of [400, 401, 403, 404, 409, 410, 412, 413, 422, 500]) {
      faults({ status, headers: { "retry-after": "0" } });
      await assert.rejects(thread.set("a", 1), (error) => error instanceof ThreadkeepError && error.status === status);
      assert.equal(proxy.requests.length, 1, String(status));
    }
  });

  test("Retry-After is respected", async () => {
    const thread = await startThread();
    faults({ status: 429, headers: { "retry-after": "1" } });
    const start = performance.now();
    await thread.set("a", 1);
    assert.ok(performance.now() - start >= 990);
  });

  test("a conditional put whose response is lost is not mistaken for a conflict", async () => {
    const kv = backEnd.kv("faults");
    faults({ loseResponse: true });
    assert.equal((await kv.put("a", "x", { ifAbsent: true })).ok, true);
    assert.deepEqual(await kv.put("a", "y", { ifAbsent: true }), { ok: false });
    const scope = backEnd.scope("session:faults");
    faults({ loseResponse: true });
    assert.equal((await scope.set("a", "x", { ifAbsent: true })).ok, true);
    assert.equal((await scope.set("a", "y", { ifAbsent: true })).ok, false);
    assert.equal((await kv.get("a"))!.text(), "x");
  });

  test("a pop whose response is lost returns the same elements", async () => {
    const thread = await startThread();
    await thread.set("list", [1, 2, 3]);
    faults({ loseResponse: true });
    assert.deepEqual((await thread.merge([{ op: "pop", key: "list" }])).results, [{ values: [3] }]);
    assert.deepEqual(await thread.get("list"), [1, 2]);
  });
});

describe("order", () => {
  test("writes of an object are performed in call order, and reads do not wait", async () => {
    const thread = await startThread();
    const held = gate();
    const later = () => held.opened.then(() => pause(50 * Math.random()));
    proxy.fault = ({ method }) => (method === "POST" ? { after: later() } : undefined);
    const writes = Array.from({ length: 8 }, (_, index) => thread.push("list", index));
    assert.deepEqual(await thread.keys(), ["ready"]);
    held.open();
    await Promise.all(writes);
    assert.deepEqual(await thread.get("list"), [0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("a failed write does not stop the writes behind it", async () => {
    const thread = await startThread();
    const results = await Promise.allSettled([thread.push("list", 1), thread.increment("list"), thread.push("list", 2)]);
    assert.deepEqual(results.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
    assert.deepEqual(await thread.get("list"), [1, 2]);
  });

  test("a write stores the value at the time of the call, even if the caller then changes it", async () => {
    const thread = await startThread();
    const message = { text: "first" };
    const writes = [thread.set("a", 1), thread.push("list", message)];
    message.text = "second";
    await Promise.all(writes);
    assert.deepEqual(await thread.get("list"), [{ text: "first" }]);
  });
});

describe("signals", () => {
  test("an abort ends a call that is waiting to retry, and the call throws the reason", async (t) => {
    let requests = 0;
    const unavailable = async () => (requests++, new Response("", { status: 503, headers: { "retry-after": "9" } }));
    const thread = createClient({ baseUrl: "http://fake", apiKey: API_KEY, fetch: unavailable }).thread("thrd_" + "0".repeat(32));
    // with mocked timers, the client waits forever before its retry, unless the signal aborts the call
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const controller = new AbortController();
    const call = thread.set("a", 1, { signal: controller.signal });
    for (let round = 0; round < 100; round++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(requests, 1);
    controller.abort("enough");
    await assert.rejects(call, (reason) => reason === "enough");
  });

  test("an abort ends a call that is waiting for a response, and a call with an aborted signal is not sent", async () => {
    const thread = await startThread();
    faults({ hang: true });
    const hanging = thread.set("a", 1, { signal: AbortSignal.timeout(100) });
    await assert.rejects(hanging, (error) => error instanceof DOMException);
    const before = AbortSignal.abort("early");
    await assert.rejects(thread.read({ signal: before }), (reason) => reason === "early");
    await thread.set("a", 2);
  });
});

describe("turns", () => {
  test("a renewal that arrives after the release does not abort the signal", async () => {
    await withLongerTtls(async (ttlSeconds) => {
      proxy.fault = () => undefined;
      const thread = await backEnd.threads.create();
      const turn = await thread.turn({ ttlSeconds });
      const held = gate();
      proxy.fault = ({ method }) => (method === "PATCH" ? { after: held.opened } : undefined);
      await until("the renewal is in flight", () => proxy.requests.at(-1)?.method === "PATCH");
      await turn.release();
      held.open();
      await until("the renewal is answered", () => proxy.open === 0);
      await thread.read();
      assert.equal(turn.signal.aborted, false);
    });
  });
});

describe("secrets", () => {
  test("no message and no stack contains a value, a signed ID or an API key", async () => {
    const secret = "a-very-secret-value";
    const thread = await startThread();
    const signature = thread.signedId!.split(";")[1]!;
    const errors: unknown[] = [];
    const recordFailure = (promise: Promise<unknown>) => promise.then(() => assert.fail("it must fail"), (error) => errors.push(error));
    proxy.fault = () => undefined;
    await recordFailure(thread.increment("ready"));
    await recordFailure(thread.set("a", secret, { ifMatch: 99 }));
    await recordFailure(createClient({ baseUrl: proxy.url, signedId: thread.signedId + "\n1" }).current().set("a", secret));
    await recordFailure(createClient({ baseUrl: proxy.url, signedId: thread.id + ";" + signature.toLowerCase() }).current().set("a", secret));
    await recordFailure(createClient({ baseUrl: proxy.url, apiKey: API_KEY + "\n1" }).thread(thread.id!).set("a", secret));
    await recordFailure(createClient({ baseUrl: proxy.url, apiKey: API_KEY + "1" }).thread(thread.id!).set("a", secret));
    await recordFailure(createClient({ baseUrl: "http://127.0.0.1:9", attempts: 1, apiKey: API_KEY }).thread(thread.id!).set("a", secret));
    proxy.fault = () => ({ status: 200, body: `not JSON: ${secret}` });
    await recordFailure(thread.set("a", secret));
    await recordFailure(thread.get("a"));
    for (const error of errors) {
      const text = inspect(error, { depth: 9 });
      for (const hidden of [secret, signature, API_KEY]) assert.ok(!text.includes(hidden), text);
    }
  });
});
