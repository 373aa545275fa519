import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { API_KEY, type Server, api, enter, newContext, newThread, noErrors, openConsole, openPage, pageOf, startServer, until, visit } from "./support/console.js";

const READER = "a-reading-secret-of-the-tests-that-is-long-enough";
const EVENTS = "a-listening-secret-of-the-tests-that-is-long-enough";

let server: Server;
before(async () => {
  server = await startServer({
    THREADKEEP_API_KEYS: `ops:${API_KEY},reader:${READER},listener:${EVENTS}`,
    THREADKEEP_API_KEY_RIGHTS: "reader:threads.read,listener:events",
  });
});
afterEach(noErrors);

test("a wrong key is rejected with the error of the service", async () => {
  const page = await openPage(server, await newContext());

  await enter(page, "a-secret-that-the-server-does-not-know");

  await page.getByRole("alert").getByText("invalid_api_key").waitFor();
  assert.equal(await page.locator(".shell").count(), 0);
  await enter(page, API_KEY);
  await page.locator(".shell").waitFor();
});

test("the key is only in the memory of the tab", async () => {
  const context = await newContext();
  const page = await openConsole(server, "#/threads", API_KEY, context);

  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, name]));
  assert.ok(!kept.includes(API_KEY), kept);
  assert.deepEqual(await context.cookies(), []);
  assert.deepEqual(await page.evaluate(async () => (await indexedDB.databases()).length + (await caches.keys()).length), 0);
  await page.reload();

  await page.getByLabel("API key").waitFor();
  assert.equal(await page.locator(".shell").count(), 0);
});

test("a kept key survives reloads until the user forgets it, and is not shared with other tabs", async () => {
  const context = await newContext();
  const page = await openPage(server, context, "#/threads");
  await page.getByLabel("Keep until I close the tab").check();
  await enter(page, API_KEY);
  await page.locator(".shell").waitFor();
  await page.reload();
  await page.locator(".shell").waitFor();
  const other = await openPage(server, context, "#/threads");
  await other.getByLabel("API key").waitFor();
  assert.equal(await page.evaluate((key) => JSON.stringify({ ...localStorage }).includes(key), API_KEY), false);

  await visit(page, "#/settings");
  await page.getByRole("button", { name: "Forget the key" }).click();
  await page.getByLabel("API key").waitFor();

  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.reload();
  await page.getByLabel("API key").waitFor();
});

test("a rejected key is not kept", async () => {
  const page = await openPage(server, await newContext());
  await page.getByLabel("Keep until I close the tab").check();

  await enter(page, "a-secret-that-the-server-does-not-know");

  await page.getByRole("alert").getByText("invalid_api_key").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("a key with limited rights opens the first page that it has access to", async () => {
  await newThread(server);
  for (const [key, heading] of [[READER, "Threads"], [EVENTS, "Events"], [API_KEY, "Overview"]] as const) {
    const page = await openConsole(server, "", key);
    await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
  }
});

test("a read-only key shows threads, and cannot change them", async () => {
  const id = await newThread(server, { state: { n: 1 } });
  const page = await openConsole(server, pageOf(id, "state"), READER);

  await page.getByRole("treeitem").first().waitFor();

  await page.getByRole("button", { name: "Actions" }).click();
  assert.deepEqual(await page.getByRole("menuitem").allTextContents(), ["Export"]);
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("button", { name: "Edit n", exact: true }).count(), 0);
  for (const [fragment, right] of [["#/events", "events"], ["#/webhooks", "webhooks"], ["#/playground", "threads"], ["#/settings", "admin"], ["#/statistics", "admin"]] as const) {
    await visit(page, fragment);
    await page.getByText("This API key does not open this page").waitFor();
    await page.locator(".empty code", { hasText: new RegExp(`^${right}$`) }).waitFor();
  }
  await visit(page, pageOf(id, "scope"));
  await page.locator(".empty code", { hasText: "scopes" }).waitFor();
});

test("a key without rights to threads opens the pages that it has access to", async () => {
  const page = await openConsole(server, "#/threads", EVENTS);

  await page.getByText("This API key does not open this page").waitFor();
  await visit(page, "#/events");
  await page.locator(".status.on").waitFor();
});

test("a page that a key has no access to links to one that it has access to", async () => {
  for (const [key, fragment, name] of [[READER, "#/events", "Threads"], [EVENTS, "#/threads", "Events"]] as const) {
    const page = await openConsole(server, fragment, key);
    await page.getByText("This API key does not open this page").waitFor();

    await page.locator("main").getByRole("link", { name, exact: true }).click();

    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    assert.equal(await page.getByText("This API key does not open this page").count(), 0);
  }
});

test("forgetting the key also forgets all data that was read with it", async () => {
  await newThread(server, { metadata: { title: "A secret title" } });
  const page = await openConsole(server, "#/threads");
  await page.getByText("A secret title").first().waitFor();
  await visit(page, "#/settings");

  await page.getByRole("button", { name: "Forget the key" }).click();

  await page.getByLabel("API key").waitFor();
  await enter(page, EVENTS);
  await visit(page, "#/threads");
  await page.getByText("This API key does not open this page").waitFor();
  assert.equal(await page.getByText("A secret title").count(), 0);
});

async function startInTerminal(): Promise<{ output: () => string; stop: () => Promise<void> }> {
  const child = spawn("script", ["-qfec", `exec "${process.env["THREADKEEP_BIN"]}"`, "/dev/null"], {
    env: { THREADKEEP_LISTEN: "127.0.0.1:0", PATH: process.env["PATH"], TERM: "dumb" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (data) => (output += String(data)));
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  after(stop);
  await until("the server prints its link", () => /#once=[0-9a-f]{64}/.test(output));
  return { output: () => output, stop };
}

const linksIn = (output: string) => [...output.matchAll(/(http:\/\/127\.0\.0\.1:\d+)\/console\/(#once=[0-9a-f]{64})/g)];

test("the link that the server prints opens the console once", async () => {
  const { output } = await startInTerminal();
  const [[, url, fragment]] = linksIn(output()) as unknown as [[string, string, string]];
  const own = { url } as Server;

  const page = await openPage(own, await newContext(), fragment);
  await page.locator(".shell").waitFor();
  assert.ok(!page.url().includes("once"), page.url());
  await page.getByRole("heading", { name: "Playground" }).waitFor();

  // the link works only once
  const other = await openPage(own, await newContext(), fragment);
  await other.getByText("This link was used").waitFor();
  assert.equal(await other.locator(".shell").count(), 0);

  await until("the server prints another link", () => linksIn(output()).length === 2);
  const next = linksIn(output())[1]![2]!;
  assert.notEqual(next, fragment);
  const third = await openPage(own, await newContext(), next);
  await third.locator(".shell").waitFor();
  await third.getByRole("button", { name: "Create a thread", exact: true }).click();
  await third.getByText("2. Add messages from two panes").waitFor();
});

test("a server with API keys prints no link, and accepts no token", async () => {
  for (const token of ["0".repeat(64), API_KEY]) {
    const response = await fetch(`${server.url}/console/session`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    assert.equal(response.status, 401);
    assert.equal(((await response.json()) as { code: string }).code, "invalid_api_key");
  }
  await assert.rejects(api(server, "GET", "/v1/settings", undefined, READER), /right_missing/);
});
