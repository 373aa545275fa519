import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { API_KEY, api, newThread, noErrors, openConsole, pageOf, startServer, until, withLongerTtls } from "./support/console.js";

afterEach(noErrors);

/** Waits until the page shows the key `a`. Fails if the thread ends first. */
async function isShown(page: Page): Promise<void> {
  await line(page, '"a"').or(page.getByText("This thread has ended")).first().waitFor();
  assert.equal(await line(page, '"a"').count(), 1);
}

interface BriefThread {
  server: Awaited<ReturnType<typeof startServer>>;
  id: string;
  page: Page;
  ttlSeconds: number;
}

/** Opens a thread that expires soon. Retries with longer TTLs if the machine is slow. */
const onBriefThread = (check: (thread: BriefThread) => Promise<void>) =>
  withLongerTtls(async (ttlSeconds) => {
    const server = await startServer({ THREADKEEP_THREAD_TTL_SECONDS: String(ttlSeconds) });
    const id = await newThread(server);
    const page = await openConsole(server, pageOf(id, "state"));
    // recreates the thread if it has expired, because opening the page may take longer than the TTL
    await api(server, "PUT", `/v1/threads/${id}/state/a`, "1");
    await isShown(page);
    await check({ server, id, page, ttlSeconds });
  }, [4, 20, 60]);

const line = (page: Page, text: string) => page.getByRole("treeitem").filter({ hasText: text });

test("the time left is extended by reads of other clients, but not by the open page", async () => {
  await onBriefThread(async ({ server, id, page, ttlSeconds }) => {
    const left = page.locator(".facts div", { hasText: "Time left" }).locator("dd");

    for (const end = performance.now() + 1_500 * ttlSeconds; performance.now() < end; ) {
      await api(server, "GET", `/v1/threads/${id}/state/a`);
      assert.doesNotMatch((await left.textContent())!, /over/);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }

    // the open page must not extend the thread's lifetime
    await page.getByText("This thread has ended: expired.").waitFor();
  });
});

test("a page shows that its thread has expired", async () => {
  await onBriefThread(async ({ server, id, page }) => {
    await page.getByText("This thread has ended: expired.").waitFor();

    await line(page, '"a"').waitFor();
    assert.equal(await page.getByRole("button", { name: "Edit a" }).count(), 0);
    assert.equal((await api(server, "GET", `/v1/threads/${id}`)).exists, false);
  });
});

test("a page reconnects when the server has restarted", async () => {
  const own = await startServer();
  const id = await newThread(own, { state: { a: 1 } });
  const page = await openConsole(own, pageOf(id, "state"));
  await line(page, '"a"').waitFor();

  await own.stop();
  await page.getByText("The service does not answer.").first().waitFor();
  await page.locator(".status.off").waitFor();
  await own.restart();

  await page.locator(".status.on").waitFor();
  await page.locator(".banner").waitFor({ state: "detached" });
  // the memory store loses the thread in the restart, so this write creates the thread again
  await api(own, "PUT", `/v1/threads/${id}/state/b`, "2");
  await line(page, '"b"').waitFor();
});

test("a tab asks for a key if the restarted server does not accept its key", async () => {
  const settings = { THREADKEEP_API_KEYS: `ops:${API_KEY}` };
  const own = await startServer(settings);
  const page = await openConsole(own, "#/threads");
  await page.getByRole("heading", { name: "Threads" }).waitFor();

  settings.THREADKEEP_API_KEYS = "ops:another-secret-of-the-tests-that-is-long-enough";
  await own.stop();
  const other = await startServer({ ...settings, THREADKEEP_LISTEN: new URL(own.url).host });
  assert.ok(other);
  // the click may fail, because the page may have asked for a key already, after a rejected call of its own
  await page.getByRole("button", { name: "Refresh" }).click({ timeout: 5_000 }).catch(() => {});

  await page.getByLabel("API key").waitFor();
  await page.getByRole("alert").getByText("invalid_api_key").waitFor();
});

test("a page reconnects to a server that has restarted with a different signing key", async () => {
  const prefix = { THREADKEEP_KEY_PREFIX: `moved${process.pid}` };
  const own = await startServer({ ...prefix, THREADKEEP_SIGNING_KEYS: "a:a-signing-secret-of-the-tests-that-is-long-enough" });
  const id = await newThread(own, { state: { a: 1 } });
  const page = await openConsole(own, pageOf(id, "state"));
  await line(page, '"a"').waitFor();
  await page.locator(".status.on").waitFor();

  await own.stop();
  const again = await startServer({
    ...prefix,
    THREADKEEP_SIGNING_KEYS: "b:b-signing-secret-of-the-tests-that-is-long-enough",
    THREADKEEP_LISTEN: new URL(own.url).host,
  });
  assert.ok(again);

  await page.locator(".status.on").waitFor();
  await api(own, "PUT", `/v1/threads/${id}/state/b`, "2");
  await line(page, '"b"').waitFor();
});

test("a hidden tab closes its connection, and catches up when it is visible again", async () => {
  const own = await startServer();
  const id = await newThread(own, { state: { a: 1 } });
  const page = await openConsole(own, pageOf(id, "state"));
  await page.locator(".status.on").waitFor();
  const streams = async () => {
    const text = await (await fetch(`${own.url}/metrics`)).text();
    return [...text.matchAll(/^threadkeep_event_streams\S* (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  assert.equal(await streams(), 1);

  const hide = (isHidden: boolean) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  await hide(true);
  await until("the stream has ended", async () => (await streams()) === 0);
  await api(own, "PUT", `/v1/threads/${id}/state/b`, "2");
  await hide(false);

  await line(page, '"b"').waitFor();
  await page.locator(".status.on").waitFor();
});
