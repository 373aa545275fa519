import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Server, api, newThread, noErrors, openConsole, startServer, until } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

const rows = (page: Page) => page.getByRole("list", { name: "Events" }).getByRole("listitem");

async function open(): Promise<Page> {
  const page = await openConsole(server, "#/events");
  await page.getByText("live", { exact: true }).waitFor();
  return page;
}

test("events appear as they happen, and one opens as JSON", async () => {
  const page = await open();

  const id = await newThread(server, { state: { a: 1 } });
  // repeats the update, because the server starts to log updates a few seconds after the first listener requests them
  await until("an update is seen", async () => {
    await api(server, "POST", `/v1/threads/${id}/state/n/increment`, { by: 1 });
    return (await rows(page).filter({ hasText: "thread.updated" }).count()) > 0;
  });
  await api(server, "DELETE", `/v1/threads/${id}`);

  await rows(page).filter({ hasText: "thread.created" }).getByRole("button", { name: "Copy id" }).waitFor();
  await rows(page).filter({ hasText: "thread.destroyed" }).click();
  const json = page.getByRole("dialog").getByLabel("Event as JSON");
  await json.waitFor();
  const event = JSON.parse((await json.textContent())!) as { type: string; data: { thread_id: string; reason: string } };
  assert.equal(event.type, "thread.destroyed");
  assert.deepEqual([event.data.thread_id, event.data.reason], [id, "destroyed"]);
  await page.getByRole("dialog").getByRole("link", { name: id }).click();
  await page.getByRole("heading", { name: id }).waitFor();
});

test("events are filtered by type and text, paused and cleared", async () => {
  const page = await open();
  await page.getByLabel("thread.destroyed").check();
  await page.getByText("live", { exact: true }).waitFor();

  const ids = [await newThread(server), await newThread(server)];
  for (const id of ids) await api(server, "DELETE", `/v1/threads/${id}`);
  await until("both ends are listed", async () => (await rows(page).count()) === 2);
  assert.equal(await rows(page).filter({ hasText: "thread.created" }).count(), 0);

  await page.getByLabel("Find a thread or a text").fill(ids[0]!);
  await until("one is left", async () => (await rows(page).count()) === 1);
  await page.getByLabel("Find a thread or a text").fill("");

  await page.getByRole("button", { name: "Pause" }).click();
  const third = await newThread(server);
  await api(server, "DELETE", `/v1/threads/${third}`);
  await page.getByText("paused", { exact: true }).waitFor();
  assert.equal(await rows(page).count(), 2);
  await page.getByRole("button", { name: "Continue" }).click();
  await until("the third is listed", async () => (await rows(page).count()) === 3);

  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByText("No event has happened").waitFor();
});

test("keys move between events", async () => {
  const page = await open();
  await newThread(server);
  await newThread(server);
  await until("both are listed", async () => (await rows(page).count()) >= 2);

  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");

  await page.getByRole("dialog").getByLabel("Event as JSON").waitFor();
});
