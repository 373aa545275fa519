import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import { API_KEY, type Server, api, hashOf, newContext, newThread, noErrors, openConsole, pageOf, startServer, visit, waitUntilShown } from "./support/console.js";

let server: Server;
const ids: string[] = [];
before(async () => {
  server = await startServer();
  for (const [owner, title] of [["ada", "First"], ["grace", "Second"], ["ada", "Third"]] as const) {
    ids.push(await newThread(server, { owner, metadata: { title }, state: { messages: [{ role: "user", content: title }] } }));
    // threads created in the same millisecond would be sorted by ID
    await setTimeout(2);
  }
  await newThread(server, { metadata: { title: "Without an owner" } });
});
afterEach(noErrors);

const titles = async (page: Page) => (await page.locator(".thread-row .thread-title").allTextContents()).map((text) => text.trim());

test("rows of threads begin with the title, or with the id of a thread without a title", async () => {
  const id = await newThread(server, { metadata: { title: "  ", topic: "trains" } });
  const page = await openConsole(server, "#/threads");
  const titled = page.locator(".thread-row", { hasText: "Third" }).locator(".thread-link");
  await titled.waitFor();

  assert.match((await titled.textContent())!, /^Third\s*thrd_/);

  const plain = page.locator(".thread-row", { hasText: "topic:" });
  assert.match((await plain.locator(".thread-link").textContent())!, /^\s*thrd_/);
  assert.match((await plain.locator(".thread-meta").textContent())!, /topic: "trains"/);
  await api(server, "DELETE", `/v1/threads/${id}`);
});

test("threads are listed with the newest first", async () => {
  const page = await openConsole(server, "#/threads");

  await page.getByText("4 threads, newest first").waitFor();

  assert.deepEqual(await titles(page), ["Without an owner", "Third", "Second", "First"]);
  const row = page.locator(".thread-row", { hasText: "Third" });
  assert.equal(await row.getByRole("meter").getAttribute("aria-valuemax"), "1048576");
  assert.match((await row.locator(".thread-times").textContent())!, /[3-5]\d min|1 h 0 min/);
});

test("a list is filtered by owner and by metadata", async () => {
  const page = await openConsole(server, "#/threads");
  await page.getByText("4 threads").waitFor();

  await page.getByLabel("Owner").fill("ada");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("2 threads").waitFor();
  assert.deepEqual(await titles(page), ["Third", "First"]);

  await page.getByLabel("Metadata key").fill("title");
  await page.getByLabel("has the text").fill("First");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("1 thread,").waitFor();

  await page.getByLabel("has the text").fill("Nothing");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("No thread fits.").waitFor();
});

/** Fakes `pages` pages of the thread list, because creating enough threads would take minutes. */
async function fakeLists(page: Page, pages: number, items: (page: number) => object[]): Promise<{ count: number }> {
  const requests = { count: 0 };
  await page.route("**/v1/threads?*", (route) => {
    requests.count++;
    const number = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
    return route.fulfill({ json: { threads: items(number), next_cursor: number + 1 < pages ? String(number + 1) : null } });
  });
  return requests;
}

const listed = (number: number, updated_at = "2026-01-01T00:00:00.000Z") => ({
  id: `thrd_${String(number).padStart(32, "0")}`,
  exists: true,
  version: 1,
  size_bytes: 2,
  limit_bytes: 1_048_576,
  keys: 0,
  metadata: { title: `Thread ${number}` },
  created_at: updated_at,
  updated_at,
  expires_at: "2100-01-01T00:00:00.000Z",
  ttl_seconds: 3_600,
});

test("a search of many threads shows its progress, and can be continued", async () => {
  const page = await openConsole(server, "#/events");
  // a page covers 1,000 threads; only page 70 has a match
  const requests = await fakeLists(page, 100, (number) => (number === 70 ? [listed(70_000)] : []));
  await visit(page, "#/threads");
  await page.getByLabel("Metadata key").fill("title");
  await page.getByLabel("has the text").fill("Thread 70000");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByText(/^0 threads so far among up to .* looked through/).waitFor();
  const first = requests.count;
  assert.ok(first <= 100, `${first} requests`);

  await page.getByRole("button", { name: "Search on" }).click();

  await page.locator(".thread-row", { hasText: "Thread 70000" }).waitFor();
  await page.getByText("1 thread, newest first").waitFor();
  assert.ok(requests.count - first <= 50, `${requests.count} requests`);
});

test("a long list is sorted by id until all threads have been read", async () => {
  const page = await openConsole(server, "#/events");
  await fakeLists(page, 15, (number) => Array.from({ length: 100 }, (_, i) => listed(100 * number + i, new Date(Date.UTC(2026, 0, 1, 0, 0, 100 * number + i)).toISOString())));
  await visit(page, "#/threads");
  await page.getByText("1,000 threads so far, in order of id").waitFor();
  assert.equal((await titles(page))[0], "Thread 0");

  await page.locator("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));

  await page.getByText("1,500 threads, newest first").waitFor();
  await page.locator("main").evaluate((main) => main.scrollTo(0, 0));
  await page.locator(".thread-row", { hasText: "Thread 1499" }).waitFor();
  assert.equal((await titles(page))[0], "Thread 1499");
});

test("an id opens its thread, and the address contains only a hash of the id", async () => {
  const page = await openConsole(server, "#/threads");
  await page.getByText("4 threads").waitFor();

  await page.keyboard.press("/");
  await page.keyboard.type(ids[0]!);
  await page.keyboard.press("Enter");

  await page.getByRole("heading", { name: ids[0]! }).waitFor();
  assert.ok(page.url().endsWith(pageOf(ids[0]!)), page.url());
  assert.ok(!page.url().includes(ids[0]!));
});

test("a shared link finds its thread in another browser", async () => {
  const page = await openConsole(server, pageOf(ids[1]!, "state"));
  await page.getByRole("heading", { name: ids[1]! }).waitFor();

  // the server's log contains the first 8 digits of the hash
  await visit(page, `#/threads/${hashOf(ids[2]!).slice(0, 8)}`);
  await page.getByRole("heading", { name: ids[2]! }).waitFor();

  await visit(page, "#/threads/0123456789abcdef");
  await page.getByText("No thread has this address.").waitFor();
  await visit(page, "#/threads/x");
  await page.getByText("This address names no thread.").waitFor();
});

test("keys move in the list, open a thread and show the help", async () => {
  const page = await openConsole(server, "#/threads");
  await page.getByText("4 threads").waitFor();

  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert.match((await page.locator(":focus").textContent())!, /Third/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: ids[2]! }).waitFor();

  await page.keyboard.press("u");
  await page.getByText("4 threads").waitFor();
  await page.locator(".thread-row").first().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Next and previous line").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("e");
  await page.getByRole("heading", { name: "Events" }).waitFor();
});

test("ids are copied", async () => {
  const context = await newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await openConsole(server, "#/threads", API_KEY, context);

  await page.locator(".thread-row", { hasText: "First" }).getByRole("button", { name: "Copy id" }).click();

  await waitUntilShown(page, "Copied: id");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ids[0]);
});

test("a service without threads opens the playground, and later starts show the overview", async () => {
  const fresh = await startServer();
  const page = await openConsole(fresh, "#/threads");
  await page.getByText("There are no threads yet.").waitFor();
  await visit(page, "#/");
  await page.getByRole("heading", { name: "Playground" }).waitFor();

  await api(fresh, "POST", "/v1/threads", {});
  await visit(page, "#/events");
  await visit(page, "#/");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});
