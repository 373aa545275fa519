import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { createClient, ThreadkeepError } from "threadkeep";
import { jar } from "./support/jar.js";
import { type Proxy, startProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import { gate, until } from "./support/until.js";

let baseUrl: string;
let proxy: Proxy;
before(async () => {
  baseUrl = (await startServer()).url;
  proxy = await startProxy(baseUrl);
});

const identities = {
  header: () => createClient({ baseUrl: proxy.url, identity: "header" }),
  cookie: () => createClient({ baseUrl: proxy.url, identity: "cookie", fetch: jar().fetch }),
};

for (const [name, clientOf] of Object.entries(identities)) {
  describe(`by ${name}`, () => {
    test("ten concurrent first writes, by several objects, use one thread", async () => {
      proxy.fault = () => ({ delayMs: Math.random() * 20 });
      const client = clientOf();
      await Promise.all(Array.from({ length: 10 }, (_, index) => client.current().push("list", index)));
      assert.deepEqual((await client.current().get("list")).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    test("a read, a write and a stream at once share the first visit", async () => {
      proxy.fault = () => ({ delayMs: Math.random() * 20 });
      const thread = clientOf().current();
      let opened = () => {};
      const isOpen = new Promise<void>((resolve) => (opened = resolve));
      const events = thread.events({ onOpen: opened });
      const event = events.next();
      const [, receipt] = await Promise.all([thread.read(), thread.push("list", 1), isOpen]);
      assert.equal(receipt.version, 1);
      await thread.push("list", 2);
      assert.equal(((await event).value as { threadId: string }).threadId, thread.id);
      assert.deepEqual(await thread.get("list"), [1, 2]);
      await events.return!();
    });

    test("a lost response to the very first write does not write twice", async () => {
      let lost = 0;
      proxy.fault = ({ method }) => (method === "POST" && lost++ === 0 ? { loseResponse: true } : undefined);
      const thread = clientOf().current();
      await thread.push("list", 1);
      await thread.push("list", 2);
      assert.deepEqual(await thread.get("list"), [1, 2]);
    });

    test("a failed call does not block the next one", async () => {
      proxy.fault = () => undefined;
      const thread = clientOf().current();
      const failed = assert.rejects(thread.set("", 1), { code: "invalid_key" });
      await thread.push("list", 1);
      await failed;
      assert.deepEqual(await thread.get("list"), [1]);
    });

    test("an aborted call ends immediately, and the others continue", async () => {
      const held = gate();
      proxy.fault = () => ({ after: held.opened });
      const client = clientOf();
      const controller = new AbortController();
      const first = client.current().push("list", 1);
      const second = client.current().push("list", 2, { signal: controller.signal });
      setTimeout(() => controller.abort(), 20);
      await assert.rejects(second, { name: "AbortError" });
      held.open();
      await first;
      assert.deepEqual(await client.current().get("list"), [1]);
    });
  });
}

describe("by header", () => {
  test("a late response to a request with an earlier ID does not bring that ID back", async () => {
    proxy.fault = () => undefined;
    const thread = identities.header().current();
    await thread.push("list", 1);
    const old = thread.id;
    const held = gate();
    proxy.answeredRequests.length = 0;
    proxy.fault = ({ method }) => (method === "GET" ? { respondAfter: held.opened } : undefined);
    const late = thread.read();
    await until("the server has answered", () => proxy.answeredRequests.length);
    await thread.destroy();
    const next = thread.id;
    held.open();
    assert.deepEqual((await late).state, { list: [1] });
    assert.equal(thread.id, next);
    assert.notEqual(next, old);
  });
});

describe("by cookie", () => {
  test("no header names the thread", async () => {
    proxy.fault = () => undefined;
    proxy.requests.length = 0;
    const thread = identities.cookie().current();
    await thread.push("list", 1);
    await thread.push("list", 2);
    assert.ok(thread.signedId);
    assert.ok(proxy.requests.every(({ headers }) => !headers["x-thread-id"] && !headers.authorization));
  });

  test("a cookie that the browser does not return causes an error in this call and all later ones", async () => {
    proxy.fault = () => undefined;
    const thread = createClient({ baseUrl, identity: "cookie", fetch: jar({ isBlocked: true }).fetch }).current();
    await thread.push("list", 1);
    const isLost = (error: unknown) =>
      error instanceof ThreadkeepError && error.code === "cookie_lost" && error.message.includes("identity: \"header\"");
    await assert.rejects(thread.push("list", 2), isLost);
    await assert.rejects(thread.read(), isLost);
    await assert.rejects(thread.events().next(), isLost);
  });

  test("a new thread in another tab is not treated as a lost cookie", async () => {
    proxy.fault = () => undefined;
    const { fetch } = jar();
    const [one, two] = [0, 1].map(() => createClient({ baseUrl, identity: "cookie", fetch }).current());
    await one!.push("list", 1);
    await two!.push("list", 2);
    assert.equal(one!.id, two!.id);
    await one!.destroy();
    await one!.push("list", 3);
    await one!.destroy();
    await one!.push("list", 4);
    await two!.push("list", 5);
    assert.equal(two!.id, one!.id);
    assert.deepEqual(await two!.get("list"), [4, 5]);
  });

  test("a late response for the previous thread does not change the thread", async () => {
    const thread = identities.cookie().current();
    proxy.fault = () => undefined;
    await thread.push("list", 1);
    const held = gate();
    proxy.answeredRequests.length = 0;
    proxy.fault = ({ path }) => (path.endsWith("/keys") ? { respondAfter: held.opened } : undefined);
    const late = thread.keys();
    await until("the server has answered", () => proxy.answeredRequests.length);
    await thread.destroy();
    const { id } = thread;
    held.open();
    assert.deepEqual(await late, ["list"]);
    assert.equal(thread.id, id);
  });
});

describe("for a request", () => {
  const requestWith = (headers: { [name: string]: string | string[] }) => ({ headers });

  test("other cookies of the browser are not forwarded, and the new cookie is returned", async () => {
    proxy.fault = () => undefined;
    const client = createClient({ baseUrl: proxy.url, apiKey: "a-key-of-the-back-end" });
    proxy.requests.length = 0;
    const first = client.forRequest(requestWith({ cookie: "theme=dark; atid_other=1" }));
    await Promise.all([first.push("list", 1), first.push("list", 2)]);
    const [cookie] = first.responseHeaders().getSetCookie();
    assert.match(cookie!, /^atid=thrd_.*HttpOnly/);
    const second = client.forRequest(new Request("http://app/", { headers: { cookie: `theme=dark; ${cookie!.split(";")[0]}` } }));
    assert.deepEqual(await second.get("list"), [1, 2]);
    assert.equal(second.responseHeaders().get("x-thread-id"), first.signedId);
    assert.ok(proxy.requests.every(({ headers }) => !headers.authorization && !headers.cookie?.includes("theme")));
  });

  test("the browser's header takes precedence over its cookie", async () => {
    const client = createClient({ baseUrl });
    const thread = client.forRequest(requestWith({}));
    await thread.push("list", 1);
    const again = client.forRequest(requestWith({ "x-thread-id": [thread.signedId!], cookie: "atid=other" }));
    assert.deepEqual(await again.get("list"), [1]);
    const wrong = client.forRequest(requestWith({ "x-thread-id": "" }));
    await assert.rejects(wrong.read(), { code: "invalid_thread_signature" });
  });
});
