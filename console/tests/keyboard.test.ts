import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Server, api, newThread, noErrors, openConsole, pageOf, startServer, visit } from "./support/console.js";

let server: Server;
let id: string;
before(async () => {
  server = await startServer();
  id = await newThread(server, { state: { messages: [{ role: "user", content: "Hello" }], n: 1 } });
  for (const step of [1, 2, 3]) await api(server, "POST", `/v1/threads/${id}/history`, { id: `item-${step}`, value: { step } });
  for (const name of ["first", "second"]) await api(server, "POST", `/v1/threads/${id}/checkpoints`, { name });
  for (const path of ["a", "b"]) await api(server, "POST", "/v1/webhooks", { url: `https://example.com/${path}`, events: ["thread.rotated"] });
});
afterEach(noErrors);

const focused = async (page: Page) => (await page.locator(":focus").textContent())!;

async function helpOf(page: Page): Promise<string[]> {
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  const keys = await page.getByRole("dialog").locator("kbd").allTextContents();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return keys;
}

test("the help lists the keys that have an effect on the current page", async () => {
  const page = await openConsole(server, "#/overview");
  const always = ["o, t, e", "Esc", "?"];
  const list = ["j, k", "Enter"];
  for (const [fragment, shown, keys] of [
    ["#/overview", "Requests by route", []],
    ["#/playground", "Create a thread", []],
    ["#/threads", "1 thread,", ["/", ...list]],
    ["#/webhooks", "https://example.com/a", ["/", "j, k"]],
    ["#/settings", "About thread_ttl_seconds", ["/", ...list]],
    [pageOf(id, "chat"), "Hello", ["/", "u"]],
    [pageOf(id, "state"), '"messages"', ["/", ...list, "u"]],
    [pageOf(id, "history"), "item-3", ["/", ...list, "u"]],
    [pageOf(id, "checkpoints"), "second", [...list, "u"]],
  ] as const) {
    await visit(page, fragment);
    await page.locator("main").getByText(shown).first().waitFor();
    assert.deepEqual(await helpOf(page), [...keys, ...always], fragment);
  }
});

test("a slash moves the focus to the search field of a page", async () => {
  const page = await openConsole(server, "#/threads");
  for (const [fragment, name] of [
    ["#/threads", "Id"],
    ["#/events", "Find a thread or a text"],
    ["#/webhooks", "Find an endpoint"],
    ["#/archives", "Id of a thread"],
    ["#/settings", "Find a setting"],
    [pageOf(id, "chat"), "Find a message"],
    [pageOf(id, "state"), "Find a key"],
    [pageOf(id, "history"), "Find in the 3 items that were read"],
  ] as const) {
    await visit(page, fragment);
    const field = page.getByRole("searchbox", { name, exact: true });
    await field.waitFor();
    await page.keyboard.press("/");
    assert.ok(await field.evaluate((element) => element === document.activeElement), fragment);
    await page.keyboard.press("Escape");
  }
  await visit(page, "#/statistics");
  await page.getByRole("button", { name: "Search", exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.press("Enter");
  await page.getByText(/1 threads? with .* in total/).waitFor();
});

test("a search of a short list shows only the matching lines", async () => {
  const page = await openConsole(server, pageOf(id, "history"));
  await page.getByText("item-3").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type('"step":2');
  await page.getByText("item-3").waitFor({ state: "detached" });
  await page.getByText("item-2").waitFor();

  await visit(page, "#/webhooks");
  await page.getByRole("heading", { name: "https://example.com/a" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("com/b");
  await page.getByRole("heading", { name: "https://example.com/a" }).waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "https://example.com/b" }).waitFor();
});

test("j and k move in short lists, and Enter opens a line", async () => {
  const page = await openConsole(server, pageOf(id, "history"));
  await page.getByText("item-3").waitFor();
  for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
  assert.match(await focused(page), /item-2/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("Item 2: item-2").waitFor();
  await page.keyboard.press("Escape");

  await visit(page, pageOf(id, "checkpoints"));
  await page.getByText("second").waitFor();
  for (const key of ["j", "j", "j"]) await page.keyboard.press(key);
  const last = await focused(page);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText(`Restore checkpoint ${/\d+/.exec(last)![0]}`).waitFor();
  await page.keyboard.press("Escape");

  await visit(page, "#/webhooks");
  await page.getByRole("heading", { name: "https://example.com/b" }).waitFor();
  await page.keyboard.press("j");
  const first = await focused(page);
  await page.keyboard.press("j");
  assert.notEqual(await focused(page), first);
  assert.match(await focused(page), /example\.com/);

  await visit(page, "#/settings");
  await page.getByText("About thread_ttl_seconds").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(":focus details[open]").waitFor();

  await visit(page, "#/statistics");
  const row = page.locator(".card", { hasText: "Largest states seen" }).getByRole("listitem").first();
  await row.waitFor();
  await page.keyboard.press("j");
  assert.match(await focused(page), /thrd_/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: id }).waitFor();
});
