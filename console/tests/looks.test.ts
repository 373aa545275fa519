/** Checks each page with axe, and takes screenshots in two sizes and two themes. Serious violations fail. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, test } from "node:test";
import type { Page } from "playwright-core";
import { API_KEY, STORE, type Server, api, enter, newContext, newThread, noErrors, pageOf, push, startServer, visit } from "./support/console.js";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SCREENSHOTS = join(process.env["SCREENSHOTS"]!, STORE);

type Look = [name: string, fragment: string, shown: string];

let server: Server;
let looks: Look[];
before(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  server = await startServer();
  const sentence = "The quick brown fox jumps over the lazy dog. ";
  for (let i = 0; i < 30; i++)
    await newThread(server, { owner: i % 3 ? "ada" : "grace", metadata: { title: `Conversation ${i}`, language: "en" }, state: { tokens: i, text: sentence.repeat(i * 40) } });
  const messages = Array.from({ length: 12 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: sentence.repeat(1 + (i % 4)) }));
  const tools = { role: "assistant", content: null, tool_calls: [{ id: "1", function: { name: "weather", arguments: "{}" } }] };
  const id = await newThread(server, { owner: "ada", metadata: { title: "A trip to Oslo" }, state: { messages: [...messages, tools], settings: { model: "m-1", temperature: 0.5 }, list: [1, null, true, "text"] } });
  for (let i = 0; i < 5; i++) await api(server, "POST", `/v1/threads/${id}/history`, { id: `item-${i}`, value: { step: i, note: sentence } });
  await api(server, "POST", `/v1/threads/${id}/checkpoints`, { name: "before the booking" });
  await api(server, "POST", "/v1/scopes/keys/set", { scope: `thread:${id}`, key: "user/name", value: "Ada" });
  await api(server, "POST", "/v1/scopes/tasks/set", { scope: `thread:${id}`, tasks: [{ id: "1", content: "Book the train", status: "in_progress" }, { id: "2", content: "Pack", status: "completed" }] });
  await api(server, "POST", "/v1/webhooks", { url: "https://example.com/hook", events: ["thread.created", "thread.destroyed"] });
  const owned = await newThread(server, { owner: "o".repeat(256), state: { n: 1 } });
  const ended = await newThread(server, { metadata: { title: "An old conversation" }, state: { messages } });
  await api(server, "DELETE", `/v1/threads/${ended}`);
  looks = [
    ["playground", "#/playground", "Create a thread"],
    ["threads", "#/threads", "newest first"],
    ["thread-owner", pageOf(owned, "state"), "Show all"],
    ["thread-chat", pageOf(id, "chat"), "tool_calls"],
    ["thread-state", pageOf(id, "state"), '"settings"'],
    ["thread-history", pageOf(id, "history"), "item-4"],
    ["thread-checkpoints", pageOf(id, "checkpoints"), "before the booking"],
    ["thread-scope", pageOf(id, "scope"), "Book the train"],
    ["events", "#/events", "thread.created"],
    ["webhooks", "#/webhooks", "https://example.com/hook"],
    ["not-found", "#/nowhere", "There is no such page."],
    ["not-a-hash", "#/threads/x", "This address names no thread."],
    ["archives", "#/archives", "destroyed"],
    ["archive", `#/archives/${pageOf(ended).split("/").at(-1)}`, "Restore"],
    ["statistics", "#/statistics", "Large states"],
    ["settings", "#/settings", "thread_ttl_seconds"],
    ["overview", "#/overview", "Requests by route"],
  ];
});

async function violationsOf(page: Page): Promise<string[]> {
  const results = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] }> } };
    return (await axe.run({ resultTypes: ["violations"] })).violations;
  });
  const serious = results.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`).join("\n")}`);
}

const LOOKS = [["desktop", 1280, 800, "light"], ["phone", 390, 844, "dark"], ["desktop", 1280, 800, "dark"], ["phone", 390, 844, "light"]] as const;

// covers each size and theme once; with LONG, covers all combinations
for (const [size, width, height, colorScheme] of LOOKS.slice(0, process.env["LONG"] ? 4 : 2)) {
  test(`pages on a ${size}, ${colorScheme}`, async (t) => {
    // the page's Content-Security-Policy would block axe
    const context = await newContext({ viewport: { width, height }, colorScheme, reducedMotion: "reduce", bypassCSP: true });
    await context.addInitScript({ path: AXE });
    const page = await context.newPage();
    await page.goto(`${server.url}/console/`);
    await page.getByLabel("API key").waitFor();
    const check = async (name: string) => {
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${size}-${colorScheme}.png`) });
      assert.deepEqual(await violationsOf(page), [], name);
      assert.equal(await page.locator("h1").count(), 1, `headings of ${name}`);
      const { scroll, client } = await page.evaluate(() => ({ scroll: document.querySelector("main")!.scrollWidth, client: document.querySelector("main")!.clientWidth }));
      assert.ok(scroll <= client, `${name} is ${scroll - client} px too wide`);
    };
    await t.test("login", () => check("login"));
    await enter(page, API_KEY);
    await page.locator(".shell").waitFor();
    for (const [name, fragment, shown] of looks) {
      await t.test(name, async () => {
        await visit(page, fragment);
        if (name === "events") {
          await page.locator(".status.on").waitFor();
          const id = await newThread(server, { state: { messages: [] } });
          await push(server, id, "user", "Hello");
          await api(server, "DELETE", `/v1/threads/${id}`);
          await page.getByRole("list", { name: "Events" }).getByRole("listitem").filter({ hasText: "thread.destroyed" }).waitFor();
        }
        await page.getByText(shown).first().waitFor();
        if (name === "playground") {
          await page.getByRole("button", { name: "Create a thread", exact: true }).click();
          await page.getByLabel("Left pane").getByText("listening").waitFor();
          await page.getByRole("button", { name: "Add from both at once" }).click();
          await page.getByLabel("Right pane").getByText("From the left pane").waitFor();
        }
        if (name === "overview") await page.getByRole("img", { name: /Latency in ms, now: median \d/ }).waitFor();
        await check(name);
      });
    }
    await t.test("threads of an owner", async () => {
      await visit(page, "#/threads");
      await page.getByLabel("Owner").fill("ada");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByLabel("Newest by").waitFor();
      await check("threads-owner");
      // the fields and the button in a line share a baseline
      const parts = await page.locator(".filters").locator("input, select, button").all();
      const boxes = await Promise.all(parts.map(async (part) => (await part.boundingBox())!));
      const bases = boxes.map(({ y, height }) => Math.round(y + height));
      if (size === "desktop") assert.equal(new Set(bases).size, 1, `bases ${bases.join()}`);
      await page.getByLabel("Owner").fill("");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByLabel("Newest by").waitFor({ state: "detached" });
    });
    await t.test("thread with a change", async () => {
      const id = await newThread(server);
      await visit(page, pageOf(id, "state"));
      await page.getByText("The state is empty.").waitFor();
      await page.locator(".status.on").waitFor();
      // one value of each kind, because each has its own colour
      const state = { number: 1, string: "text", literal: true, list: [1], object: { n: 1 } };
      // checks a copy of the page, because the highlight lasts only 4 s and the check may take longer
      const copied = page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            new MutationObserver((_, observer) => {
              if (document.querySelectorAll(".tree-row.changed").length !== 5) return;
              observer.disconnect();
              const main = document.querySelector("main")!;
              const copy = main.cloneNode(true) as Element;
              copy.addEventListener("done", () => copy.replaceWith(main));
              main.replaceWith(copy);
              resolve();
            }).observe(document.body, { subtree: true, childList: true, attributes: true });
          }),
      );
      await api(server, "PUT", `/v1/threads/${id}/state`, state);
      await copied;
      await check("thread-changed");
      await page.evaluate(() => document.querySelector("main")!.dispatchEvent(new Event("done")));
    });
    await t.test("dialogs", async () => {
      await visit(page, looks.find(([name]) => name === "thread-state")![1]);
      await page.getByRole("button", { name: "Edit settings" }).click();
      await check("dialog-edit");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Actions" }).click();
      await check("actions");
      await page.getByRole("menuitem", { name: "Destroy" }).click();
      await check("dialog-destroy");
      await page.keyboard.press("Escape");
      await page.locator("main").focus();
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
      await check("dialog-keys");
      await page.keyboard.press("Escape");
    });
    if (size === "phone") {
      await t.test("menu", async () => {
        await page.getByRole("button", { name: "Menu" }).click();
        await page.getByRole("navigation", { name: "Pages" }).waitFor();
        await check("menu");
        await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Threads" }).click();
        await page.getByRole("heading", { name: "Threads" }).waitFor();
      });
    }
    await noErrors();
  });
}
