import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { API_KEY, type Server, api, enter, newContext, newThread, noErrors, openConsole, pageOf, startServer, until, visit } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer({ THREADKEEP_WEBHOOK_ALLOW_PRIVATE: "true" });
});
afterEach(noErrors);

const dialog = (page: Page) => page.getByRole("dialog");

async function startReceiver(listener: RequestListener): Promise<string> {
  const receiver = createServer(listener).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  after(() => (receiver.closeAllConnections(), receiver.close()));
  return `http://127.0.0.1:${(receiver.address() as { port: number }).port}/hook`;
}

test("an endpoint is created, receives events, gets a new secret and is deleted", async () => {
  const received: string[] = [];
  const url = await startReceiver((request, response) => {
    request.on("data", (data) => received.push(String(data)));
    response.end();
  });
  const page = await openConsole(server, "#/webhooks");
  await page.getByText("There is no endpoint.").waitFor();

  await page.getByRole("button", { name: "New endpoint" }).click();
  await dialog(page).getByLabel("URL").fill("ftp://example.com");
  await dialog(page).getByRole("button", { name: "Create" }).click();
  await dialog(page).getByText("invalid_webhook_url").waitFor();
  await dialog(page).getByLabel("URL").fill(url);
  await dialog(page).getByLabel("thread.created").check();
  await dialog(page).getByRole("button", { name: "Create" }).click();
  await dialog(page).getByText(/^whsec_/).waitFor();
  await page.keyboard.press("Escape");

  await page.getByRole("heading", { name: url }).waitFor();
  await page.getByText("No delivery has failed for good.").waitFor();
  await newThread(server);
  await until("the receiver gets the event", () => received.some((body) => body.includes("thread.created")));

  await page.getByRole("button", { name: "New secret" }).click();
  await dialog(page).getByRole("button", { name: "Create" }).click();
  await dialog(page).getByText(/^whsec_/).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await page.getByText("There is no endpoint.").waitFor();
  assert.deepEqual((await api(server, "GET", "/v1/webhooks")).webhooks, []);
});

test("the page shows when an endpoint fails, and when it recovers", async () => {
  let status = 500;
  const url = await startReceiver((request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  const page = await openConsole(server, "#/webhooks");
  await page.getByText("There is no endpoint.").waitFor();
  const { id } = await api<{ id: string }>(server, "POST", "/v1/webhooks", { url, events: ["thread.created", "thread.destroyed"] });
  await visit(page, "#/events");
  await visit(page, "#/webhooks");
  await page.getByText("No delivery is pending.").waitFor();
  const counter = async (name: string) => Number(await page.locator(".tiles div", { hasText: name }).locator("dd").textContent());
  const [delivered, failed] = [await counter("Delivered"), await counter("Failed attempts")];

  const thread = await newThread(server);
  await api(server, "DELETE", `/v1/threads/${thread}`);

  await page.getByText("Failing: 2 pending.").waitFor();
  const rows = page.getByRole("list", { name: "Pending deliveries" }).getByRole("listitem");
  const tried = rows.filter({ hasText: "thread.created" });
  await tried.getByText("it answered 500").waitFor();
  await tried.getByText(/^\d+ attempts?, next attempt (now|in \d+ s)$/).waitFor();
  await tried.getByRole("link", { name: thread.slice(0, 11) }).waitFor();
  await tried.getByRole("button", { name: "Copy event id" }).waitFor();
  await rows.filter({ hasText: "thread.destroyed" }).getByText("waits for an earlier event").waitFor();
  await until("failed attempts are counted", async () => (await counter("Failed attempts")) > failed);

  status = 204;
  await page.getByText("No delivery is pending.").waitFor();
  await until("both are counted", async () => (await counter("Delivered")) === delivered + 2);
  await page.getByText("Counted by the replica that answers").waitFor();
  await api(server, "DELETE", `/v1/webhooks/${id}`);
});

test("failed deliveries are listed page by page and replayed", async () => {
  // Fakes the server's responses, because a real server retries a failing delivery for a day, and no setting shortens
  // that time. `tests/it/webhooks/failed.rs` tests the real server.
  const { id } = await api<{ id: string }>(server, "POST", "/v1/webhooks", { url: "http://127.0.0.1:9/", events: ["thread.created"] });
  const failed = (n: number) => ({
    event_id: `evt_${String(n).padStart(26, "0")}`,
    type: "thread.created",
    thread_id: "thrd_0123456789abcdef0123456789abcdef",
    time: "2026-01-01T00:00:00.000Z",
    attempts: 31,
    first_attempt_at: "2026-01-01T00:00:00.000Z",
    last_error: `the receiver answered <b>50${n}</b>`,
  });
  const page = await openConsole(server, "#/overview");
  const replays: unknown[] = [];
  await page.route(`**/v1/webhooks/${id}/failed*`, (route) => {
    const isSecond = new URL(route.request().url()).searchParams.get("cursor") === "next";
    const body = replays.length > 0 ? { failed: [], next_cursor: null } : isSecond ? { failed: [failed(2)], next_cursor: null } : { failed: [failed(1)], next_cursor: "next" };
    return route.fulfill({ json: body });
  });
  await page.route(`**/v1/webhooks/${id}/replay`, (route) => {
    replays.push(route.request().postDataJSON());
    return route.fulfill({ json: { replayed: 1 } });
  });
  await visit(page, "#/webhooks");
  await page.getByText("the receiver answered <b>501</b>").waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByText("the receiver answered <b>502</b>").waitFor();

  assert.equal(await page.getByRole("button", { name: "Copy event id" }).count(), 2);
  await page.getByRole("button", { name: "Replay", exact: true }).nth(1).click();

  await page.getByText("No delivery has failed for good.").waitFor();
  assert.deepEqual(replays, [{ events: [failed(2).event_id] }]);
  await api(server, "DELETE", `/v1/webhooks/${id}`);
});

test("a replay reaches the service", async () => {
  const { id } = await api<{ id: string }>(server, "POST", "/v1/webhooks", { url: "http://127.0.0.1:9/", events: ["thread.created"] });
  assert.deepEqual(await api(server, "POST", `/v1/webhooks/${id}/replay`, {}), { replayed: 0 });
  assert.deepEqual((await api(server, "GET", `/v1/webhooks/${id}/failed`)).failed, []);
  await api(server, "DELETE", `/v1/webhooks/${id}`);
});

test("an ended thread is found in the archives and restored", async () => {
  const id = await newThread(server, { state: { messages: [{ role: "user", content: "Archived words" }], n: 1 }, metadata: { title: "Ended" } });
  await api(server, "POST", `/v1/threads/${id}/history`, { id: "one", value: { kept: true } });
  const other = await newThread(server, { state: { n: 2 } });
  for (const one of [other, id]) await api(server, "DELETE", `/v1/threads/${one}`);
  const page = await openConsole(server, "#/archives");
  await page.getByRole("listitem").filter({ hasText: "Ended" }).getByText("destroyed").waitFor();
  await page.getByLabel("Ended since").fill("2100-01-01T00:00");
  await page.getByText("No thread has ended since then.").waitFor();

  await page.getByLabel("Ended since").fill("");
  await page.getByText("archives, the oldest end first").waitFor();
  await page.getByRole("listitem").filter({ hasText: "Ended" }).getByRole("button", { name: "Copy id" }).waitFor();

  await page.getByLabel("Id of a thread").fill(id);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("Archived words").waitFor();
  await page.getByText('{"kept":true}').waitFor();
  await page.getByRole("button", { name: "Restore" }).click();
  // the restore fails while the destroyed thread's tombstone, a temporary marker, blocks the ID
  await dialog(page).getByRole("button", { name: "Restore" }).click();
  await until("it is restored, or rejected with the error of the service", async () => (await page.getByRole("heading", { name: `Thread ${id}` }).count()) + (await dialog(page).getByText("thread_destroyed").count()) > 0);
});

test("an ended thread is restored after its tombstone has expired", async () => {
  const own = await startServer({ THREADKEEP_TOMBSTONE_SECONDS: "0" });
  const id = await newThread(own, { state: { n: 1 } });
  await api(own, "DELETE", `/v1/threads/${id}`);
  const page = await openConsole(own, "#/archives");
  await page.getByRole("listitem").getByRole("link").click();

  await page.getByRole("button", { name: "Restore" }).click();
  await dialog(page).getByRole("button", { name: "Restore" }).click();

  await page.getByRole("heading", { name: `Thread ${id}` }).waitFor();
  await page.getByRole("treeitem").filter({ hasText: '"n"' }).waitFor();
  assert.deepEqual(await api(own, "GET", `/v1/threads/${id}/state`), { n: 1 });
});

test("the overview plots requests", async () => {
  const page = await openConsole(server, "#/overview");
  await page.locator(".tiles").waitFor();
  const id = await newThread(server);

  await until("a plot shows the route", async () => {
    await api(server, "POST", `/v1/threads/${id}/state/n/increment`, { by: 1 });
    return (await page.getByRole("img", { name: /Requests by route in \/s, now: all .*increment/ }).count()) > 0;
  });

  for (const title of ["Latency", "Latency of the store"]) await page.getByRole("img", { name: new RegExp(`^${title} in ms, now: median \\d`) }).waitFor();
  await page.getByRole("row").filter({ hasText: "increment" }).first().waitFor();
  assert.equal(await page.locator(".tiles div", { hasText: "Replicas" }).locator("dd").textContent(), "1");
  assert.ok((await page.locator("canvas").count()) >= 3);
});

test("large states are found among all threads", async () => {
  const id = await newThread(server, { state: { big: "x".repeat(500_000) } });
  const page = await openConsole(server, "#/statistics");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText(/threads with .* in total/).waitFor();

  await page.locator(".card", { hasText: "Large states" }).getByRole("listitem").first().getByText("488 KiB").waitFor();
  await page.locator(".card", { hasText: "Large states" }).getByRole("listitem").first().getByRole("link").click();
  await page.getByRole("heading", { name: id }).waitFor();
});

test("hot threads are listed where the server offers them", async () => {
  const response = await fetch(`${server.url}/v1/stats`, { headers: { authorization: `Bearer ${API_KEY}` } });
  const id = await newThread(server);
  for (let i = 0; i < 30; i++) await api(server, "POST", `/v1/threads/${id}/state/n/increment`, { by: 1 });
  const page = await openConsole(server, "#/statistics");
  if (response.status === 404) {
    await page.getByText("This server does not offer hot threads.").waitFor();
    return;
  }
  const card = page.locator(".card", { hasText: "Most writes" });
  await card.getByRole("listitem").filter({ hasText: id.slice(0, 11) }).waitFor();
  await page.locator(".card", { hasText: "Largest states seen" }).getByRole("listitem").first().waitFor();
});

test("the overview counts the threads of the store, and states the start of other counts", async () => {
  const own = await startServer();
  const ids = [await newThread(own, { state: { text: "x".repeat(5_000) } }), await newThread(own)];
  const page = await openConsole(own, "#/overview");
  const tile = async (name: string) => await page.locator(".tiles div", { has: page.getByText(name, { exact: true }) }).locator("dd").textContent();
  await until("both are counted", async () => (await page.locator(".tiles").count()) > 0 && (await tile("Threads")) === "2");
  assert.equal(await tile("Threads created since the start"), "2");

  await api(own, "DELETE", `/v1/threads/${ids[1]}`);
  await until("one is left", async () => {
    await api(own, "PUT", `/v1/threads/${ids[0]}/state/n`, "1");
    return (await tile("Threads")) === "1";
  });
  assert.equal(await tile("Threads ended since the start"), "1");
  await page.getByRole("img", { name: /^Threads, now: threads 1/ }).waitFor();
  // while the pointer is not on a plot, its legend shows the newest values, with the time in 24-hour format
  const plot = page.locator(".plot", { hasText: "State sizes after writes" });
  await until("the legend has the sizes of states", async () => {
    await api(own, "PUT", `/v1/threads/${ids[0]}/state/n`, "1");
    return /Time:?\s*\d\d:\d\d:\d\d\s*median:?\s*\d[\d.]* KiB/.test((await plot.locator(".u-legend").textContent())!);
  });
  await page.getByRole("img", { name: /^State sizes after writes in KiB, now: median \d/ }).waitFor();
});

test("settings are listed without secrets", async () => {
  const page = await openConsole(server, "#/settings");
  const row = page.locator(".settings > div", { hasText: "api_keys" }).first();
  await row.getByText("ops:***").waitFor();
  await row.getByText("from THREADKEEP_API_KEYS").waitFor();
  assert.ok(!(await page.content()).includes(API_KEY));

  await page.getByLabel("Find a setting").fill("signing_key_wait_seconds");
  await until("one is left", async () => (await page.locator(".settings > div").count()) === 1);
  await page.getByText("About signing_key_wait_seconds").click();
  await page.locator(".help").getByText("key").first().waitFor();
  await page.getByLabel("Find a setting").fill("");
  await page.getByLabel("only those that are set").check();
  await until("only the settings of the test are listed", async () => (await page.locator(".settings > div").count()) < 12);
});

test("themes are chosen and kept", async () => {
  const context = await newContext({ colorScheme: "light" });
  const page = await openConsole(server, "#/settings", API_KEY, context);
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();

  await page.getByLabel("Theme").selectOption("dark");
  await until("the page is dark", async () => (await background()) !== light);
  const dark = await background();
  await page.reload();
  await page.getByLabel("API key").waitFor();
  assert.equal(await background(), dark);

  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await background(), dark);

  await enter(page, API_KEY);
  await page.getByLabel("Theme").selectOption("system");
  await until("the page is light", async () => (await background()) === light);
  await page.emulateMedia({ colorScheme: "dark" });
  await until("the page is dark", async () => (await background()) === dark);
});

test("commands to copy and pages do not contain the API key", async () => {
  const id = await newThread(server, { state: { big: "x".repeat(300_000) } });
  const page = await openConsole(server, pageOf(id, "state"));
  await page.getByRole("button", { name: "Edit big" }).click();
  await dialog(page).getByText("too much to edit on a page").waitFor();
  const line = (await dialog(page).getByLabel("command", { exact: true }).textContent())!;
  assert.match(line, /Bearer \$API_KEY/);
  assert.ok(!(await page.content()).includes(API_KEY));
});
