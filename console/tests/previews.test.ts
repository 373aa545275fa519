import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { type Server, api, newThread, noErrors, openConsole, push, startServer, until, visit } from "./support/console.js";

afterEach(noErrors);

const rowOf = (page: Page, title: string) => page.locator(".thread-row").filter({ has: page.getByText(title, { exact: true }) });
const previewOf = (page: Page, title: string) => rowOf(page, title).locator(".thread-words");

const thread = (server: Server, title: string, state: object = {}) => newThread(server, { metadata: { title }, state });
const item = (server: Server, id: string, name: string, value: unknown) => api(server, "POST", `/v1/threads/${id}/history`, { id: name, value });

const message = (role: string, content: unknown) => ({ role, content });

function readsOf(page: Page): URL[] {
  const reads: URL[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (/^\/v1\/threads\/thrd_/.test(url.pathname)) reads.push(url);
  });
  return reads;
}

test("rows show the newest message of a conversation in the state or in the history", async () => {
  const server = await startServer();
  await thread(server, "In the state", { messages: [message("user", "Hello"), message("assistant", "Good evening")] });
  await thread(server, "Under another key", { tokens: 4, dialogue: [message("human", "Under another key!")] });
  await thread(server, "Of a model", { messages: [message("user", [{ type: "text", text: "In parts" }]), { role: "assistant", content: null, tool_calls: [{ id: "1", function: { name: "weather" } }] }] });
  await thread(server, "Large", { notes: "x".repeat(100_000), messages: [message("user", "Large and short")] });
  await thread(server, "Large without", { notes: "x".repeat(100_000) });
  await thread(server, "No words", { list: [1, 2], text: "A text" });
  const history = await thread(server, "In the history", { tokens: 1 });
  await item(server, history, "1", message("user", "Old words"));
  await item(server, history, "2", message("assistant", "Words of the history"));
  const page = await openConsole(server, "#/threads");

  await previewOf(page, "In the state").getByText("Good evening").waitFor();
  await previewOf(page, "Under another key").getByText("Under another key!").waitFor();
  await previewOf(page, "Of a model").getByText("In parts").waitFor();
  await previewOf(page, "Large").getByText("Large and short").waitFor();
  await previewOf(page, "In the history").getByText("Words of the history").waitFor();
  assert.equal((await previewOf(page, "In the state").textContent())!.trim(), "assistant Good evening");
  assert.equal((await previewOf(page, "Large without").textContent())!, "");
  assert.equal((await previewOf(page, "No words").textContent())!, "");
});

test("refreshing the list shows new messages, and does not read unchanged states again", async () => {
  const server = await startServer();
  await thread(server, "Unchanged", { messages: [message("user", "As before")] });
  const changed = await thread(server, "Changed", { messages: [message("user", "First")] });
  const grown = await thread(server, "Grown");
  await item(server, grown, "1", message("user", "One"));
  const page = await openConsole(server, "#/threads");
  await previewOf(page, "Unchanged").getByText("As before").waitFor();
  await previewOf(page, "Changed").getByText("First").waitFor();
  await previewOf(page, "Grown").getByText("One").waitFor();

  await push(server, changed, "assistant", "Second");
  // an append to the history does not change the thread's version
  await item(server, grown, "2", message("assistant", "Two"));
  const reads = readsOf(page);
  await page.getByRole("button", { name: "Refresh" }).click();

  await previewOf(page, "Changed").getByText("Second").waitFor();
  await previewOf(page, "Grown").getByText("Two").waitFor();
  await previewOf(page, "Unchanged").getByText("As before").waitFor();
  const paths = reads.map(({ pathname }) => pathname).sort();
  assert.deepEqual(paths, [`/v1/threads/${changed}/state`, `/v1/threads/${grown}/history`].sort());
});

test("a list of 30 threads with previews does not extend their lifetimes", async () => {
  const server = await startServer();
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    const id = await thread(server, `Thread ${i}`, i % 3 === 0 ? {} : { messages: [message("user", `Words of ${i}`)] });
    if (i % 3 === 0) await item(server, id, "1", message("user", `Words of ${i}`));
    ids.push(id);
  }
  const endOf = async (id: string) => Date.parse((await api<{ expires_at: string }>(server, "GET", `/v1/threads/${id}?peek=true`)).expires_at);
  const ends = await Promise.all(ids.map(endOf));
  // waits, so that a read that extends a lifetime would move the expiry by at least 3 s, which the test can detect
  const latest = Math.max(...ends);
  await until("the newest thread is 3 s old", async () => latest - Date.now() < 3_597_000);
  const page = await openConsole(server, "#/events");
  const reads = readsOf(page);

  await visit(page, "#/threads");
  for (let i = 29; i >= 0; i--) {
    await rowOf(page, `Thread ${i}`).scrollIntoViewIfNeeded();
    await previewOf(page, `Thread ${i}`).getByText(`Words of ${i}`, { exact: true }).waitFor();
  }

  assert.ok(reads.length >= 30, `${reads.length} reads`);
  assert.deepEqual(reads.filter(({ searchParams }) => searchParams.get("peek") !== "true").map(String), []);
  const after = await Promise.all(ids.map(endOf));
  // the expiry that a store reports may vary by a few milliseconds
  for (const [i, end] of after.entries()) assert.ok(Math.abs(end - ends[i]!) < 500, `thread ${i}: ${end - ends[i]!} ms`);
});

/** Counts a page's reads of thread states. All reads wait until the test sets `isReleased`. */
interface Reads {
  begun: number;
  aborted: number;
  maxInFlight: number;
  isReleased: boolean;
}

function holdReads(): void {
  const reads: Reads = { begun: 0, aborted: 0, maxInFlight: 0, isReleased: false };
  (globalThis as unknown as { reads: Reads }).reads = reads;
  let inFlight = 0;
  const send = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    if (!/\/threads\/thrd_\w+\/state\?/.test(String(input))) return send(input, init);
    reads.begun++;
    reads.maxInFlight = Math.max(reads.maxInFlight, ++inFlight);
    try {
      while (!reads.isReleased) {
        init!.signal!.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return await send(input, init);
    } catch (error) {
      reads.aborted++;
      throw error;
    } finally {
      inFlight--;
    }
  };
}

test("previews are read only for rows in view, two at a time, and aborted when a row leaves the view", async () => {
  const server = await startServer();
  for (let i = 0; i < 60; i++) await thread(server, `Thread ${i}`, { messages: [message("user", `Words of ${i}`)] });
  const page = await openConsole(server, "#/events");
  await page.evaluate(holdReads);
  const reads = () => page.evaluate(() => (globalThis as unknown as { reads: Reads }).reads);

  await visit(page, "#/threads");
  await until("two reads wait", async () => (await reads()).begun === 2);
  await page.locator("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
  await rowOf(page, "Thread 0").waitFor();
  await until("reads of other rows wait instead", async () => {
    const { begun, aborted } = await reads();
    return aborted >= 2 && begun - aborted === 2;
  });
  await page.evaluate(() => void ((globalThis as unknown as { reads: Reads }).reads.isReleased = true));

  await previewOf(page, "Thread 0").getByText("Words of 0", { exact: true }).waitFor();
  const { begun, maxInFlight } = await reads();
  assert.equal(maxInFlight, 2);
  assert.ok(begun < 40, `${begun} reads for a screen of rows`);
});

test("a thread whose preview cannot be read has a row without a preview", async () => {
  const server = await startServer();
  await thread(server, "Staying", { messages: [message("user", "Still here")] });
  const unavailable = await thread(server, "Gone", { messages: [message("user", "Not to be seen")] });
  const page = await openConsole(server, "#/events");
  await page.route(`**/v1/threads/${unavailable}/**`, (route) => route.fulfill({ status: 503, json: { code: "store_unavailable", detail: "no" } }));

  await visit(page, "#/threads");

  await previewOf(page, "Staying").getByText("Still here").waitFor();
  assert.equal((await previewOf(page, "Gone").textContent())!, "");
  assert.equal(await page.getByRole("alert").count(), 0);
});
