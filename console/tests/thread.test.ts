import assert from "node:assert/strict";
import { text as consume } from "node:stream/consumers";
import { afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { API_KEY, type Server, api, newContext, newThread, noErrors, openConsole, openPage, pageOf, push, startServer, until, visit, waitUntilShown } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

const STATE = { count: 1, messages: [{ role: "user", content: "Hello" }], settings: { model: { name: "m-1", limits: [1, 2, 3] } } };

const open = async (body: object = { state: STATE }, part = "state"): Promise<[id: string, page: Page]> => {
  const id = await newThread(server, body);
  const page = await openConsole(server, pageOf(id, part));
  await page.locator(".status.on").waitFor();
  await page.locator(".tab").waitFor();
  return [id, page];
};

const line = (page: Page, text: string | RegExp) => page.getByRole("treeitem").filter({ hasText: text });
const dialog = (page: Page) => page.getByRole("dialog");
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const choose = async (page: Page, name: string) => {
  await press(page, "Actions");
  await page.getByRole("menuitem", { name, exact: true }).click();
};
const confirm = (page: Page, name: string) => dialog(page).getByRole("button", { name, exact: true }).click();

test("the state is a tree with the size of each key", async () => {
  const [, page] = await open();
  await line(page, '"settings"').getByText(`${JSON.stringify(STATE.settings).length} B`).waitFor();

  await line(page, '"settings"').click();
  await line(page, '"model"').click();
  await page.getByRole("treeitem", { name: /"name".*"m-1"/ }).waitFor();
  await line(page, '"limits"').focus();
  await page.keyboard.press("ArrowRight");

  assert.equal(await page.getByRole("treeitem").count(), 9);
  assert.equal(await line(page, '"limits"').getAttribute("aria-level"), "3");
  await page.getByLabel("Find a key").fill("cou");
  await until("one key is left", async () => (await page.getByRole("treeitem").count()) === 1);
});

test("two tabs on one thread show each other's changes", async () => {
  const [id, first] = await open();
  const second = await openConsole(server, pageOf(id, "state"));
  await line(second, '"count"').waitFor();

  await press(first, "Edit count");

  const highlighted = [first, second].map(async (page) => {
    await waitUntilShown(page, /"count".*42/);
    await until("the highlight ends", async () => (await page.locator(".tree-row.changed").count()) === 0);
  });
  await dialog(first).getByRole("textbox").fill("42");
  await confirm(first, "Save");
  await Promise.all(highlighted);
  // many concurrent writes, and one deletion of a key
  await Promise.all(Array.from({ length: 40 }, (_, i) => push(server, id, "user", `Message ${i}`)));
  await api(server, "DELETE", `/v1/threads/${id}/state/count`);
  for (const page of [first, second]) {
    await line(page, '"messages"').getByText("[ 41 ]").waitFor();
    await line(page, '"count"').waitFor({ state: "detached" });
    await page.locator(".facts div", { hasText: "Version" }).getByText("43").waitFor();
  }
});

test("a value is saved only if the thread has not changed", async () => {
  const [id, page] = await open();
  await press(page, "Edit count");
  await api(server, "PUT", `/v1/threads/${id}/state/count`, "7");
  await dialog(page).getByRole("textbox").fill("8");
  await confirm(page, "Save");

  await dialog(page).getByText("version_mismatch").waitFor();
  await dialog(page).getByText("This key has another value meanwhile").waitFor();
  assert.equal(await api(server, "GET", `/v1/threads/${id}/state/count`), 7);
  await confirm(page, "Take its value now");
  assert.equal(await dialog(page).getByRole("textbox").inputValue(), "7");
  await dialog(page).getByRole("textbox").fill("9");
  await confirm(page, "Continue with version 2");
  await confirm(page, "Save");

  await dialog(page).waitFor({ state: "detached" });
  assert.equal(await api(server, "GET", `/v1/threads/${id}/state/count`), 9);

  await line(page, '"count"').getByText("9", { exact: true }).waitFor();
  await press(page, "Edit count");
  await confirm(page, "Delete the key");
  await line(page, '"count"').waitFor({ state: "detached" });
});

test("a value keeps its exact text, and invalid JSON is rejected with its line", async () => {
  const exact = '{"n":9007199254740993,"f":1.0,"big":1e400,"a":1,"a":2,"lone":"\\ud800","empty":[],"o":{}}';
  const [id, page] = await open();
  await api(server, "PUT", `/v1/threads/${id}/state/exact`, exact);
  await line(page, '"exact"').click();
  for (const text of ["9007199254740993", "1.0", "1e400", '"\\ud800"']) await page.locator(".tree-value", { hasText: text }).first().waitFor();

  await press(page, "Edit exact");
  const box = dialog(page).getByRole("textbox");
  await box.fill("{\n  1}");
  await confirm(page, "Save");
  await dialog(page).getByText("invalid_json").waitFor();
  await dialog(page).getByText(/line 2/).waitFor();
  await confirm(page, "Cancel");

  await press(page, "Edit exact");
  await confirm(page, "Save");
  await dialog(page).waitFor({ state: "detached" });
  const response = await fetch(`${server.url}/v1/threads/${id}/state/exact`, { headers: { authorization: `Bearer ${API_KEY}` } });
  assert.equal(await response.text(), exact);
});

test("keys that a path cannot contain, and keys with special characters, are set and deleted", async () => {
  const [id, page] = await open({ state: {} });
  await page.getByText("The state is empty.").waitFor();
  for (const key of ["..", "a/b?c#d %41", "ключ"]) {
    await choose(page, "Set a key");
    await dialog(page).getByLabel("Key").fill(key);
    await dialog(page).getByLabel("Value as JSON").fill('"v"');
    await confirm(page, "Set");
    await page.getByRole("button", { name: `Edit ${key}`, exact: true }).waitFor();
  }
  assert.deepEqual(await api(server, "GET", `/v1/threads/${id}/keys`), ["..", "a/b?c#d %41", "ключ"]);

  await press(page, "Edit ..");
  await confirm(page, "Delete the key");
  await page.getByRole("button", { name: "Edit ..", exact: true }).waitFor({ state: "detached" });
});

test("an existing key is replaced only after the user has seen its value", async () => {
  const [id, page] = await open();
  const set = async (key: string, value: string) => {
    await choose(page, "Set a key");
    await dialog(page).getByLabel("Key").fill(key);
    await dialog(page).getByLabel("Value as JSON").fill(value);
    await confirm(page, "Set");
  };
  const count = () => api(server, "GET", `/v1/threads/${id}/state/count`);
  await set("count", "2");
  await dialog(page).getByText("The thread has this key.").waitFor();
  await dialog(page).getByLabel("Value of the key").getByText("1", { exact: true }).waitFor();
  assert.equal(await count(), 1);

  // the key changes before the user confirms
  await api(server, "PUT", `/v1/threads/${id}/state/count`, "7");
  await confirm(page, "Replace");
  await dialog(page).getByText("The key has another value meanwhile.").waitFor();
  assert.equal(await count(), 7);
  // writes to other keys do not conflict
  await api(server, "PUT", `/v1/threads/${id}/state/other`, "1");
  await confirm(page, "Replace");
  await waitUntilShown(page, "Replaced");
  assert.equal(await count(), 2);

  await set("fresh", "true");
  await waitUntilShown(page, "Set");
  await dialog(page).waitFor({ state: "detached" });
  assert.equal(await api(server, "GET", `/v1/threads/${id}/state/fresh`), true);

  // if two users set the same key, the second one gets a warning
  const other = await openConsole(server, pageOf(id, "state"));
  await line(other, '"fresh"').waitFor();
  for (const one of [page, other]) {
    await choose(one, "Set a key");
    await dialog(one).getByLabel("Key").fill("both");
    await dialog(one).getByLabel("Value as JSON").fill("1");
  }
  await Promise.all([page, other].map((one) => confirm(one, "Set")));
  await until("one has set it, and one has not", async () => (await dialog(page).count()) + (await dialog(other).count()) === 1);
});

test("a push appends, and a rejection shows the error of the service", async () => {
  const [id, page] = await open();

  await choose(page, "Add a message");
  await dialog(page).getByLabel("Key").fill("count");
  await confirm(page, "Add");
  await dialog(page).getByText("not_an_array").waitFor();
  await dialog(page).getByLabel("Key").fill("messages");
  await dialog(page).getByLabel("Value as JSON").fill('{"role":"assistant","content":"Hi"}');
  await confirm(page, "Add");

  await line(page, '"messages"').getByText("[ 2 ]").waitFor();
  assert.equal((await api(server, "GET", `/v1/threads/${id}/state/messages`))[1].content, "Hi");
});

test("metadata, lifetime and owner are changed", async () => {
  const [id, page] = await open({ metadata: { title: "Old", x: 1 } });

  await choose(page, "Metadata, TTL, owner");
  await dialog(page).getByLabel(/Merge patch/).fill('{"title":"New","x":null}');
  await dialog(page).getByLabel("TTL in seconds").fill("7200");
  await dialog(page).getByLabel("Owner").fill("ada");
  await confirm(page, "Change");

  await page.locator(".chip", { hasText: 'title: "New"' }).waitFor();
  await page.locator(".facts").getByText("2 h 0 min").first().waitFor();
  const { metadata, ttl_seconds, owner } = await api(server, "GET", `/v1/threads/${id}`);
  assert.deepEqual({ metadata, ttl_seconds, owner }, { metadata: { title: "New" }, ttl_seconds: 7200, owner: "ada" });
});

test("a thread is forked, rotated and destroyed", async () => {
  const [id, page] = await open();

  await choose(page, "Fork");
  await confirm(page, "Fork");
  await page.getByRole("heading", { name: id }).waitFor({ state: "detached" });
  await page.locator(".chip", { hasText: "forked_from" }).waitFor();
  const copy = (await page.locator("h1 code").textContent())!;
  assert.deepEqual(await api(server, "GET", `/v1/threads/${copy}/state`), STATE);

  const other = await openConsole(server, pageOf(copy));
  await other.getByRole("heading", { name: copy }).waitFor();
  await other.locator(".status.on").waitFor();
  await choose(page, "Rotate");
  await confirm(page, "Rotate");
  await page.getByRole("heading", { name: copy }).waitFor({ state: "detached" });
  await page.locator(".status.on").waitFor();
  const moved = (await page.locator("h1 code").textContent())!;
  await other.getByText("This thread has moved to a new id.").waitFor();
  await other.getByRole("link", { name: moved }).click();
  await other.getByRole("heading", { name: moved }).waitFor();

  await choose(page, "Destroy");
  const button = dialog(page).getByRole("button", { name: "Destroy" });
  assert.ok(await button.isDisabled());
  await dialog(page).getByRole("textbox").fill("destroy");
  await button.click();
  for (const one of [page, other]) await one.getByText("This thread has ended: destroyed.").waitFor();
  assert.equal((await api(server, "GET", `/v1/threads/${moved}`)).exists, false);
  await page.getByRole("link", { name: "Open its archive" }).click();
  await page.getByRole("button", { name: "Restore" }).waitFor();
});

test("an export is downloaded", async () => {
  const [id, page] = await open();

  const download = page.waitForEvent("download");
  await choose(page, "Export");

  const text = await consume(await (await download).createReadStream());
  const { format, state } = JSON.parse(text) as { format: number; state: unknown };
  assert.equal(format, 1);
  assert.deepEqual(state, STATE);
  assert.ok(text.includes(id));
});

test("checkpoints are saved, restored, forked and deleted", async () => {
  const [id, page] = await open(undefined, "checkpoints");
  await page.getByText("There is no checkpoint.").waitFor();

  await press(page, "Save a checkpoint");
  await dialog(page).getByRole("textbox").fill("before");
  await confirm(page, "Save");
  await page.getByRole("listitem").filter({ hasText: "before" }).waitFor();
  await api(server, "DELETE", `/v1/threads/${id}/state`);
  await page.locator(".facts div", { hasText: "Version" }).getByText("2").waitFor();

  await press(page, "Restore");
  await confirm(page, "Restore");
  await page.locator(".facts div", { hasText: "Version" }).getByText("3").waitFor();
  assert.deepEqual(await api(server, "GET", `/v1/threads/${id}/state`), STATE);

  await press(page, "Delete");
  await confirm(page, "Delete");
  await page.getByText("There is no checkpoint.").waitFor();
});

test("history, scope and turn are shown as they change", async () => {
  const [id, page] = await open(undefined, "history");
  await page.getByText("The history is empty.").waitFor();

  for (let i = 0; i < 130; i++) await api(server, "POST", `/v1/threads/${id}/history`, { id: `item-${i}`, value: { index: i } });
  await page.getByText('{"index":129}').waitFor();
  await page.getByRole("button", { name: "Older items" }).click();
  await page.getByText('{"index":0}').waitFor();
  await page.getByText('{"index":129}').click();
  await dialog(page).getByText('{"index":129}').waitFor();
  await page.keyboard.press("Escape");

  const scope = `thread:${id}`;
  await api(server, "POST", "/v1/scopes/keys/set", { scope, key: "user/name", value: "Ada <b>" });
  await api(server, "POST", "/v1/scopes/tasks/set", { scope, tasks: [{ id: "1", content: "Write <i>", status: "in_progress" }] });
  await page.getByRole("link", { name: "Scope" }).click();
  await line(page, '"user/name"').getByText('"Ada <b>"').waitFor();
  await page.getByText("Write <i>").waitFor();

  await page.locator(".facts").getByText("free").waitFor();
  await api(server, "POST", `/v1/threads/${id}/turn`, { ttl_seconds: 600, exclusive: true });
  await press(page, "Refresh the turn");
  await page.locator(".facts").getByText("held, exclusive").waitFor();
  await choose(page, "Add a message");
  await dialog(page).getByLabel("Value as JSON").fill("1");
  await confirm(page, "Add");
  await dialog(page).getByText("turn_taken").waitFor();
});

test("a thread that does not exist appears after its first write", async () => {
  const id = "thrd_0123456789abcdef0123456789abcdef";
  const page = await openConsole(server, "#/threads");
  await page.locator("[data-search]").fill(id);
  await page.keyboard.press("Enter");
  await page.getByText("There is no thread with this id.").waitFor();

  await api(server, "PUT", `/v1/threads/${id}/state/first`, "1");

  await line(page, '"first"').waitFor();
  await api(server, "DELETE", `/v1/threads/${id}`);
  await page.getByText("This thread has ended").waitFor();
});

test("an invalid id is rejected", async () => {
  const page = await openConsole(server, "#/threads");
  await page.locator("[data-search]").fill("../../v1/webhooks");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("invalid_thread_id").waitFor();
});

test("tabs of a thread have titles of their own, without its id", async () => {
  const [id, page] = await open();
  const hash = pageOf(id).split("/").at(-1)!.slice(0, 8);
  for (const [part, label] of [["state", "State"], ["history", "History"], ["", "Chat"]] as const) {
    await visit(page, pageOf(id, part));
    await until("the title names the part", async () => (await page.title()) === `Thread ${hash} · ${label} · threadkeep console`);
  }
  await visit(page, "#/events");
  await until("another page has its own", async () => (await page.title()) === "Events · threadkeep console");
});

test("a long owner is folded, and copied completely", async () => {
  const context = await newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const owner = "owner-".repeat(42);
  const id = await newThread(server, { owner });
  const page = await openConsole(server, pageOf(id, "state"), API_KEY, context);
  const fact = page.locator(".facts div", { hasText: "Owner" });
  await fact.getByRole("button", { name: "Show all" }).waitFor();
  assert.ok((await fact.textContent())!.length < 60);

  await fact.getByRole("button", { name: "Copy owner" }).click();
  await waitUntilShown(page, "Copied: owner");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), owner);
  await fact.getByRole("button", { name: "Show all" }).click();
  await fact.getByText(owner).waitFor();
});

test("a page of the console that opens without a key asks for one", async () => {
  const id = await newThread(server);
  const page = await openPage(server, await newContext(), pageOf(id));
  await page.getByLabel("API key").waitFor();
  assert.equal(await page.locator("h1 code").count(), 0);
});
