import assert from "node:assert/strict";
import { before, beforeEach, describe, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { createClient, type Thread } from "threadkeep";
import { bundle, openPage, type Site, startBrowser, startSite } from "./support/browser.js";
import { API_KEY, type Server, startServer, STORE } from "./support/server.js";
import { gate, pause, until } from "./support/until.js";

let server: Server;
let browser: Browser;
let site: Site;
let context: BrowserContext;

before(async () => {
  server = await startServer();
  browser = await startBrowser();
  site = await startSite(server.url, await bundle("app.tsx"));
});
beforeEach(async () => {
  await context?.close();
  context = await browser.newContext();
  site.proxy.fault = () => undefined;
});

const inPage = <T>(page: Page, code: string): Promise<T> => page.evaluate(code) as Promise<T>;
const view = (page: Page) => inPage<any>(page, "page.views.at(-1)");

async function open(options: object = {}): Promise<Page> {
  const page = await openPage(context, site.url);
  await page.evaluate((options) => (globalThis as any).page.start(options), options);
  return page;
}

async function openLive(options: object = {}): Promise<Page> {
  const page = await open(options);
  await until("it is live", async () => (await view(page))?.status === "live");
  return page;
}

async function openTabsOfEndedThread(): Promise<[one: Page, two: Page]> {
  const [one, two] = [await openLive(), await openLive()];
  await inPage(one, "page.thread.push('list', 1)");
  await waitForState(two, { list: [1] });
  await inPage(one, "page.thread.destroy()");
  await until("it is destroyed", async () => (await view(two)).status === "destroyed");
  return [one, two];
}

async function openWithoutEvents(): Promise<Page> {
  site.proxy.fault = ({ path }) => (path.endsWith("/events") ? { hang: true } : undefined);
  const page = await open();
  await until("it has loaded", () => inPage(page, "page.thread?.id !== undefined"));
  await inPage(page, "page.thread.push('list', 1)");
  return page;
}

async function waitForState(page: Page, state: object): Promise<void> {
  const expected = JSON.stringify(state);
  let seen = "";
  await until(`the page shows ${expected}`, async () => (seen = JSON.stringify((await view(page)).state)) === expected).catch(
    (error) => {
      throw new Error(`${error.message}; it shows ${seen}`);
    },
  );
}

async function remoteThread(page: Page): Promise<Thread> {
  const cookies = await page.context().cookies();
  const [id, signature] = decodeURIComponent(cookies.find(({ name }) => name === "atid")!.value).split(".");
  return createClient({ baseUrl: server.url, signedId: `${id};${signature}` }).current();
}

const streams = () => site.proxy.requests.filter(({ path }) => path.endsWith("/events")).length;

describe("useThread", () => {
  test("a write appears in the same tick, is confirmed, and is never shown twice", async () => {
    const page = await openLive();
    const held = gate();
    site.proxy.fault = ({ method }) => (method === "POST" ? { respondAfter: held.opened } : undefined);
    const atOnce = await inPage<any>(page, "(() => { page.thread.push('list', 1); page.thread.push('list', 2); return new Promise((r) => setTimeout(() => r(page.views.at(-1)))) })()");
    assert.deepEqual([atOnce.state, atOnce.pending], [{ list: [1, 2] }, 2]);
    held.open();
    await until("it settles", async () => (await view(page)).pending === 0);
    await (await remoteThread(page)).set("end", 1);
    await waitForState(page, { list: [1, 2], end: 1 });
    const lists = await inPage<number[][]>(page, "page.views.map(({ state }) => state.list ?? [])");
    assert.ok(lists.every((list) => JSON.stringify([1, 2]).startsWith(JSON.stringify(list).slice(0, -1))), JSON.stringify(lists));
  });

  test("an event before the response, and a lost response, show a write once", async () => {
    const page = await openLive();
    let lost = 0;
    site.proxy.fault = ({ method }) => (method !== "POST" ? undefined : lost++ ? { delayResponseMs: 400 } : { loseResponse: true });
    await inPage(page, "page.thread.push('list', 'x')");
    await (await remoteThread(page)).set("end", 1);
    await waitForState(page, { list: ["x"], end: 1 });
    const longest = await inPage<number>(page, "Math.max(...page.views.map(({ state }) => state.list?.length ?? 0))");
    assert.equal(longest, 1);
  });

  test("a rejected write is rolled back alone, and sets `error`", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.set('list', [])");
    const outcome = await inPage<string>(page, `(async () => {
      const writes = [page.thread.push("list", 1), page.thread.increment("list"), page.thread.push("list", 2)];
      page.thread.increment("list"); // nobody awaits this
      return (await Promise.allSettled(writes)).map(({ status, reason }) => reason?.code ?? status).join();
    })()`);
    assert.equal(outcome, "fulfilled,not_an_integer,fulfilled");
    await until("the last one is rejected", async () => (await view(page)).error === "not_an_integer" && (await view(page)).pending === 0);
    await waitForState(page, { list: [1, 2] });
  });

  test("other clients' changes appear in order, and an older state is never shown again", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.set('count', 0)");
    const thread = await remoteThread(page);
    let reads = 0;
    // delays every other read, so that an older response arrives after a newer one
    site.proxy.fault = ({ method, path }) => (method === "GET" && path.includes("/state") && reads++ % 2 ? { delayResponseMs: 150 } : undefined);
    for (let index = 1; index <= 20; index++) {
      await thread.merge([{ op: "increment", key: "count" }, { op: "push", key: "list", value: index, maxRecords: 5 }]);
      await pause(10);
    }
    await waitForState(page, { count: 20, list: [16, 17, 18, 19, 20] });
    const counts = await inPage<number[]>(page, "page.views.map(({ state }) => state.count ?? 0)");
    assert.deepEqual(counts, [...counts].sort((a, b) => a - b));
  });

  test("a page and another client write concurrently, and both end with the same state", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 'first')");
    const thread = await remoteThread(page);
    site.proxy.fault = () => ({ delayResponseMs: Math.random() * 60 });
    const mine = inPage(page, "Promise.all(Array.from({ length: 20 }, (_, index) => page.thread.push('list', `mine ${index}`)))");
    for (let index = 0; index < 20; index++) await thread.push("list", `other ${index}`);
    await mine;
    await waitForState(page, { list: await thread.get("list") });
    const repeated = await inPage<boolean>(page, "page.views.some(({ state }) => new Set(state.list).size !== (state.list ?? []).length)");
    assert.equal(repeated, false);
    assert.equal((await thread.get("list")).length, 41);
  });

  test("maxRecords applies while writes are pending", async () => {
    const page = await openLive();
    await inPage(page, "Promise.all([1, 2, 3, 4].map((value) => page.thread.push('list', value, { maxRecords: 2 })))");
    await waitForState(page, { list: [3, 4] });
    const longest = await inPage<number>(page, "Math.max(...page.views.map(({ state }) => state.list?.length ?? 0))");
    assert.equal(longest, 2);
  });

  test("two components, StrictMode and a change of route share one stream", async () => {
    const before = streams();
    const page = await openLive({ strict: true });
    assert.equal(streams() - before, 1);
    // a stream stays open for 200 ms after its last use; retries if the page paused for too long
    let opened = -1;
    for (let ms = Infinity; ms > 150; ) {
      opened = streams();
      ms = await inPage<number>(page, `(async () => {
        const start = performance.now();
        page.setCount(0);
        await new Promise((resolve) => setTimeout(resolve, 20));
        const { length } = page.views;
        page.setCount(3);
        while (page.views.length === length) await new Promise((resolve) => setTimeout(resolve, 5));
        return performance.now() - start;
      })()`);
      await until("it is live", async () => (await view(page)).status === "live");
    }
    assert.equal(streams(), opened);
    assert.equal(await inPage(page, "page.callbacks.size"), 1);
    const open = site.proxy.open;
    await inPage(page, "page.setCount(0)");
    await until("the stream is closed", () => site.proxy.open === open - 1);
    const views = await inPage<number>(page, "page.views.length");
    await (await remoteThread(page)).set("late", 1);
    await pause(200);
    assert.equal(await inPage(page, "page.views.length"), views);
  });

  test("a page keeps its state while it is offline, and then shows the server's state", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    const thread = await remoteThread(page);
    await context.setOffline(true);
    // the emulation of an offline browser does not close streams
    site.proxy.fault = ({ path }) => (path.endsWith("/events") ? { drop: true } : undefined);
    site.cut();
    await until("it reconnects", async () => (await view(page)).status === "reconnecting");
    await thread.push("list", 2);
    const write = inPage(page, "page.thread.push('list', 3)");
    await waitForState(page, { list: [1, 3] });
    site.proxy.fault = () => undefined;
    await context.setOffline(false);
    await until("it is live", async () => (await view(page)).status === "live");
    await write;
    await waitForState(page, { list: [1, 2, 3] });
  });

  test("a page reconnects after a restart of the server", { skip: STORE !== "redis" && "the embedded store forgets" }, async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    await server.restart();
    await (await remoteThread(page)).push("list", 2);
    await waitForState(page, { list: [1, 2] });
    await until("it is live", async () => (await view(page)).status === "live");
  });

  test("a thread that another client destroyed rejects writes until a new chat begins", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    const { id } = await view(page);
    await (await remoteThread(page)).destroy();
    await until("it is destroyed", async () => (await view(page)).status === "destroyed");
    assert.deepEqual((await view(page)).state, {});
    assert.equal(await inPage(page, "page.thread.push('list', 2).catch(({ code }) => code)"), "thread_destroyed");
    await inPage(page, "page.thread.destroy()");
    await until("it is live", async () => (await view(page)).status === "live");
    assert.notEqual((await view(page)).id, id);
    await inPage(page, "page.thread.push('list', 3)");
    await (await remoteThread(page)).push("list", 4);
    await waitForState(page, { list: [3, 4] });
  });

  test("a new chat of the page is empty and live, and its status is never `destroyed`", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    await inPage(page, "page.views.length = 0, page.thread.destroy()");
    await waitForState(page, {});
    await until("it is live", async () => (await view(page)).status === "live");
    await inPage(page, "page.thread.push('list', 2)");
    await (await remoteThread(page)).push("list", 3);
    await waitForState(page, { list: [2, 3] });
    assert.ok(!(await inPage<string[]>(page, "page.views.map(({ status }) => status)")).includes("destroyed"));
  });

  test("a rotated thread stays on the page", async () => {
    const page = await openLive();
    const second = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    const cookie = await inPage<string>(page, "(async () => { const thread = page.createClient({}).current(); await thread.rotate(); return thread.id })()");
    await inPage(page, "page.thread.push('list', 2)");
    for (const one of [page, second]) {
      await waitForState(one, { list: [1, 2] });
      await until("it has the new ID", async () => (await view(one)).id === cookie);
    }
    await (await remoteThread(page)).push("list", 3);
    for (const one of [page, second]) await waitForState(one, { list: [1, 2, 3] });
  });

  test("a rotated thread stays on the page if the event arrives before the response", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    await waitForState(page, { list: [1] });
    // usually the event arrives before this response
    site.proxy.fault = ({ path }) => (path.endsWith("/rotate") ? { delayResponseMs: 500 } : undefined);
    await inPage(page, "page.createClient({}).current().rotate().then(() => {})");
    await inPage(page, "page.thread.push('list', 2)");
    await waitForState(page, { list: [1, 2] });
  });
});

describe("rendering", () => {
  test("with suspense, the first read suspends", async () => {
    let release = () => {};
    const after = new Promise<void>((resolve) => (release = resolve));
    site.proxy.fault = () => ({ after });
    const page = await open({ suspense: true, strict: true });
    await page.waitForSelector("em");
    release();
    await page.waitForSelector("pre");
    assert.ok((await inPage<object[]>(page, "page.views")).length > 0);
    await until("it is live", async () => (await view(page)).status === "live");
  });

  test("with suspense, an error of the first read goes to the boundary", async () => {
    site.proxy.fault = () => ({ status: 403, body: '{"code":"not_the_owner","detail":"no"}' });
    const page = await open({ suspense: true });
    await page.waitForSelector("i");
    assert.equal(await page.textContent("i"), "not_the_owner");
  });

  test("an initial state is shown until the state is known", async () => {
    site.proxy.fault = () => ({ delayMs: 100 });
    const page = await openLive({ initialState: { list: ["initial"] } });
    const [first] = await inPage<any[]>(page, "page.views");
    assert.deepEqual([first.state, first.status], [{ list: ["initial"] }, "loading"]);
    await waitForState(page, {});
  });
});

describe("behind a proxy that changes ETags", () => {
  for (const etag of ["weakened", "removed"] as const) {
    test(`a page shows what other clients push if ETags are ${etag}`, async () => {
      site.proxy.fault = () => ({ etag });
      const page = await openLive();
      await inPage(page, "page.thread.push('messages', 'mine')");
      await waitForState(page, { messages: ["mine"] });
      const thread = await remoteThread(page);
      await thread.push("messages", "theirs");
      await waitForState(page, { messages: ["mine", "theirs"] });
    });
  }

  test("a new chat ends the conversation, unless another client has just written to it", async () => {
    site.proxy.fault = ({ path }) => ({ etag: "removed", hang: path.endsWith("/events") });
    const page = await open();
    await until("it has loaded", () => inPage(page, "page.thread?.id !== undefined"));
    await inPage(page, "page.thread.push('list', 1)");
    await waitForState(page, { list: [1] });
    const thread = await remoteThread(page);
    await thread.push("list", 2);
    assert.equal(await inPage(page, "page.thread.destroy().catch(({ code }) => code)"), "version_mismatch");
    assert.deepEqual((await view(page)).state, { list: [1] });
    await inPage(page, "page.thread.refresh()");
    await inPage(page, "page.thread.destroy()");
    await inPage(page, "page.thread.push('list', 3)");
    await waitForState(page, { list: [3] });
    assert.deepEqual(await thread.get("list"), undefined);
  });
});

describe("a thread that expires", () => {
  const withShortTtl = async () => {
    const { url } = await startSite((await startServer({ THREADKEEP_THREAD_TTL_SECONDS: "1" })).url, await bundle("app.tsx"));
    return async () => {
      const page = await openPage(context, url);
      await page.evaluate(() => (globalThis as any).page.start({}));
      await until("it has loaded", () => inPage(page, "page.thread?.status === 'live'"));
      return page;
    };
  };
  const expires = (page: Page) => until("it has expired", async () => (await view(page)).status === "expired");

  test("stays on the screen, and the next push creates a new thread with its ID", async () => {
    const page = await (await withShortTtl())();
    await inPage(page, "page.thread.push('list', 1)");
    await expires(page);
    assert.deepEqual((await view(page)).state, { list: [1] });
    await inPage(page, "page.thread.push('list', 2, { ttlSeconds: 3600 })");
    await waitForState(page, { list: [2] });
    await until("it is live", async () => (await view(page)).status === "live");
  });

  test("continues as the new thread that another tab has created", async () => {
    const start = await withShortTtl();
    const [one, two] = [await start(), await start()];
    await inPage(one, "page.thread.push('list', 1)");
    await expires(one);
    await expires(two);
    await inPage(one, "page.thread.push('list', 2, { ttlSeconds: 3600 })");
    await inPage(two, "page.thread.push('list', 3)");
    for (const page of [one, two]) await waitForState(page, { list: [2, 3] });
  });

  test("does not write to a conversation that another tab has begun later", async () => {
    const page = await (await withShortTtl())();
    await inPage(page, "page.thread.push('list', 1)");
    await expires(page);
    const send = (method: string, path: string, body?: string) =>
      inPage(page, `fetch("/v1/threads/current${path}", ${JSON.stringify({ method, body, headers: { "content-type": "application/json" } })}).then(({ status }) => status)`);
    assert.equal(await send("DELETE", ""), 204);
    assert.equal(await send("POST", "/state/list/push?ttl_seconds=3600", '"theirs"'), 200);
    assert.equal(await inPage(page, "page.thread.push('list', 'mine').catch(({ code }) => code)"), "thread_destroyed");
    assert.equal(await inPage(page, "fetch('/v1/threads/current/state').then((response) => response.text())"), '{"list":["theirs"]}');
  });

  for (const etag of [undefined, "removed"] as const) {
    test(`is live after it is created again, although the event of its end is late${etag ? " and a proxy removes ETags" : ""}`, async () => {
      site.proxy.fault = () => (etag ? { etag } : undefined);
      const page = await openPage(context, site.url);
      await page.evaluate(`page.start({ client: { fetch: async (url, init) => {
        if (!url.includes("/events")) return fetch(url, init);
        const body = new ReadableStream({ start: (controller) => {
          page.send = (text) => controller.enqueue(new TextEncoder().encode(text));
          page.opened = (page.opened ?? 0) + 1;
        } });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      } } })`);
      await until("it is live", async () => (await view(page))?.status === "live");
      await inPage(page, "page.thread.push('list', 1)");
      const { id } = await view(page);
      const event = { time: "2026-01-01T00:00:00Z", data: { thread_id: id, life: "0123456789abcdef", version: 3, reason: "expired" } };
      await inPage(page, `page.send(${JSON.stringify(`id: 1-0\nevent: thread.destroyed\ndata: ${JSON.stringify(event)}\n\n`)})`);
      await until("it listens again", () => inPage(page, "page.opened === 2"));
      await until("it is live", async () => (await view(page)).status === "live");
      await waitForState(page, { list: [1] });
    });
  }
});

describe("writes while the server is away", () => {
  test("arrive when it is back", async () => {
    const page = await openLive();
    let attempts = 0;
    site.proxy.fault = ({ method }) => (method === "POST" && attempts++ < 12 ? { drop: true } : undefined);
    await inPage(page, "page.thread.push('list', 1)");
    await waitForState(page, { list: [1] });
    assert.ok(attempts > 12);
  });

  test("are kept in `failed` after ten seconds, and can be retried", async () => {
    const page = await openLive();
    site.proxy.fault = ({ method }) => (method === "POST" ? { loseResponse: true } : undefined);
    const code = await inPage(page, "page.thread.push('list', 1).catch(({ code }) => code)");
    assert.equal(code, "connection");
    const failed = () => inPage<any>(page, "page.thread.failed.map(({ operations, error }) => [operations[0].value, error.code])");
    assert.deepEqual(await failed(), [[1, "connection"]]);
    site.proxy.fault = () => undefined;
    const posts = () => site.proxy.requests.filter(({ method }) => method === "POST").length;
    const before = posts();
    await inPage(page, "Promise.all([page.thread.failed[0].retry(), page.thread.failed[0].retry()])");
    assert.equal(posts() - before, 1);
    assert.deepEqual(await failed(), []);
    await (await remoteThread(page)).set("end", 1);
    await waitForState(page, { list: [1], end: 1 });
  });

  test("are retried only in their own conversation, and kept if it has ended", async () => {
    const page = await openLive();
    await inPage(page, "page.thread.push('list', 1)");
    site.proxy.fault = ({ method }) => (method === "POST" ? { hang: true } : undefined);
    const start = Date.now();
    assert.equal(await inPage(page, "page.thread.push('list', 2).catch(({ code }) => code)"), "timeout");
    assert.ok(Date.now() - start < 15_000);
    site.proxy.fault = () => undefined;
    await inPage(page, "page.thread.destroy()");
    await inPage(page, "page.thread.push('list', 3)");
    assert.equal(await inPage(page, "page.thread.failed[0].retry().catch(({ code }) => code)"), "version_mismatch");
    assert.deepEqual(await inPage(page, "page.thread.failed.map(({ operations, error }) => [operations[0].value, error.code])"), [[2, "version_mismatch"]]);
    await waitForState(page, { list: [3] });
    await inPage(page, "page.thread.failed[0].discard()");
    assert.equal(await inPage(page, "page.thread.failed.length"), 0);
  });
});

describe("errors", () => {
  test("a first read that gets 408 is retried", async () => {
    const page = await openPage(context, site.url);
    // Chromium itself retries some requests after a 408
    await page.evaluate(`(() => {
      let reads = 0;
      const late = async (url, init) =>
        url.includes("/state") && reads++ === 0 ? new Response("", { status: 408 }) : fetch(url, init);
      page.start({ client: { attempts: 1, fetch: late } });
    })()`);
    await until("it is live", async () => (await view(page))?.status === "live");
  });

  test("a new chat ends a conversation that cannot be read", async () => {
    const first = await openLive();
    await inPage(first, "page.thread.push('list', 1)");
    const thread = await remoteThread(first);
    await first.close();
    let isForbidden = true;
    site.proxy.fault = ({ method, path }) => (isForbidden && method === "GET" && path.endsWith("/state") ? { status: 403 } : undefined);
    const page = await open();
    await until("it fails", async () => (await view(page))?.status === "error");
    await inPage(page, "page.thread.destroy()");
    isForbidden = false;
    await inPage(page, "page.thread.push('list', 2)");
    await waitForState(page, { list: [2] });
    assert.deepEqual(await thread.get("list"), undefined);
  });

  test("an error of the application's own code is shown", async () => {
    const page = await openPage(context, site.url);
    await page.evaluate("page.start({ list: true, client: { headers: () => { throw new TypeError('no token') } } })");
    await until("the list fails", () => inPage(page, "page.list?.status === 'error'"));
    assert.deepEqual(await inPage(page, "[page.list.error.code, page.list.error.message]"), ["unknown", "TypeError: no token"]);
    await until("the thread fails", async () => (await view(page))?.error === "unknown");
  });
});

describe("tabs", () => {
  test("seven tabs over HTTP/1.1 share one stream, and the next one takes over", async () => {
    const before = streams();
    const pages: Page[] = [];
    for (let tab = 0; tab < 7; tab++) pages.push(await openLive());
    assert.equal(streams() - before, 1);
    await inPage(pages[6]!, "page.thread.push('list', 1)");
    for (const page of pages) await waitForState(page, { list: [1] });
    await pages.shift()!.close();
    await inPage(pages[3]!, "page.thread.push('list', 2)");
    for (const page of pages) await waitForState(page, { list: [1, 2] });
    await until("the next tab listens", () => streams() - before === 2);
  });

  test("a new chat in a tab whose thread another tab has ended joins the next one", async () => {
    const [one, two] = await openTabsOfEndedThread();
    await inPage(one, "page.thread.push('list', 2)");
    await inPage(two, "page.thread.destroy()");
    await waitForState(two, { list: [2] });
    await inPage(two, "page.thread.push('list', 3)");
    await waitForState(one, { list: [2, 3] });
  });

  test("a tab that has missed the start of a new conversation does not write to it", async () => {
    const page = await openWithoutEvents();
    const send = (method: string, path: string, body?: string) =>
      inPage(page, `fetch("/v1/threads/current${path}", ${JSON.stringify({ method, body, headers: { "content-type": "application/json" } })}).then(({ status }) => status)`);
    assert.equal(await send("DELETE", ""), 204);
    assert.equal(await send("POST", "/state/list/push", '"theirs"'), 200);

    assert.equal(await inPage(page, "page.thread.push('list', 'mine').catch(({ code }) => code)"), "thread_destroyed");
    await inPage(page, "page.thread.destroy()");
    await waitForState(page, { list: ["theirs"] });
  });

  test("`destroy` in a tab that has missed the start of a new conversation does not end it", async () => {
    const page = await openWithoutEvents();
    const next = "fetch('/v1/threads/current', { method: 'DELETE' }).then(() => fetch('/v1/threads/current/state/list/push', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '2' }))";
    await inPage(page, `${next}.then(() => {})`);
    await inPage(page, "page.thread.destroy()");
    await waitForState(page, { list: [2] });
  });

  test("a new chat in one tab ends the thread in the other", async () => {
    const [one] = await openTabsOfEndedThread();
    await inPage(one, "page.thread.push('list', 2)");
    await waitForState(one, { list: [2] });
  });
});

describe("useThreads", () => {
  test("a user's conversations are listed, page by page, and again after a write", async () => {
    const own = await startServer({ THREADKEEP_OWNER: "header", THREADKEEP_TRUSTED_PROXIES: "127.0.0.1", THREADKEEP_IDENTITY_HEADER: "x-user" });
    const { url, proxy } = await startSite(own.url, await bundle("app.tsx"));
    const backEnd = createClient({ baseUrl: own.url, apiKey: API_KEY });
    for (const title of ["one", "two", "three"]) await backEnd.threads.create({ owner: "ada", metadata: { title } });
    const page = await openPage(context, url);
    await page.evaluate((options) => (globalThis as any).page.start(options), { list: true, client: { headers: { "x-user": "ada" } } });
    const list = () => inPage<any>(page, "({ ...page.list, titles: page.list?.threads.map(({ metadata }) => metadata.title ?? 'mine') })");
    await until("the list is ready", async () => (await list()).status === "ready");
    assert.deepEqual([(await list()).titles.length, (await list()).hasMore], [2, true]);
    await inPage(page, "page.list.loadMore()");
    assert.deepEqual((await list()).titles, ["three", "two", "one"]);
    await inPage(page, "page.thread.push('list', 1)");
    await until("the list has the new one", async () => (await list()).titles[0] === "mine");
    const { threads } = await backEnd.threads.list({ owner: "ada" });
    await backEnd.thread(threads.find(({ metadata }) => metadata["title"] === "two")!.id).destroy();
    await inPage(page, "page.list.refresh()");
    assert.deepEqual((await list()).titles, ["mine", "three", "one"]);
    proxy.fault = () => ({ status: 403 });
    await inPage(page, "page.list.refresh()");
    assert.equal((await list()).status, "error");
  });
});

describe("a cookie that the browser does not return", () => {
  test("causes an error", async () => {
    const origin = new URL(site.url).origin;
    const foreign = await startServer({ THREADKEEP_CORS_ORIGINS: origin });
    const page = await open({ client: { baseUrl: foreign.url.replace("127.0.0.1", "localhost"), credentials: "include" } });
    await until("it is lost", async () => {
      await inPage(page, "page.thread?.push('list', 1).catch(() => {})");
      return (await view(page))?.error === "cookie_lost";
    });
  });
});
