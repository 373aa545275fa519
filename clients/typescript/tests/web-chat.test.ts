/** Runs examples/web-chat as its README describes. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { openPage, startBrowser } from "./support/browser.js";
import { until } from "./support/until.js";

const example = spawn(join(process.env["REPOSITORY"]!, "examples/web-chat/start.sh"), {
  env: { ...process.env, PORT: "0", THREADKEEP_LISTEN: "127.0.0.1:0" },
  stdio: ["ignore", "pipe", "inherit"],
  detached: true,
});
const ctrlC = () => process.kill(-example.pid!, "SIGINT");
after(() => {
  if (example.exitCode === null) ctrlC();
});

let url = "";
let context: BrowserContext;
let one: Page;
let two: Page;
let count = 1;
before(
  async () => {
    for await (const line of createInterface(example.stdout)) {
      url = /http:\S+/.exec(line)?.[0] ?? "";
      if (url) break;
    }
    context = await (await startBrowser()).newContext();
    one = await openPage(context, url);
  },
  { timeout: 1_200_000 },
);

const texts = (page: Page, selector: string): Promise<string[]> => page.locator(selector).allInnerTexts();
const titles = (page: Page) => texts(page, "nav li button:first-child");

async function lists(expected: string[]): Promise<void> {
  for (const page of [one, two]) {
    await until(`the sidebar lists ${expected}`, async () => String(await titles(page)) === String(expected));
  }
}

async function sendMessage(page: Page, text: string): Promise<void> {
  await page.fill("[name=text]", text);
  await page.press("[name=text]", "Enter");
}

const answers = (page: Page, count: number) =>
  until(`there are ${count} answers`, async () => (await texts(page, ".assistant")).filter((text) => text.endsWith("say them.")).length === count);

/** Records each change of the last answer. */
async function watch(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(`
    globalThis.seen = [];
    new MutationObserver(() => {
      const text = [...document.querySelectorAll(".assistant")].at(-1)?.textContent;
      if (text !== seen.at(-1)) seen.push(text);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  `);
  return () => page.evaluate("seen") as Promise<string[]>;
}

test("a user logs in, asks a question, and finds the answer in a second tab", async () => {
  await one.fill("[name=name]", "Ada");
  await one.press("[name=name]", "Enter");
  await one.waitForSelector("[name=text]");
  await sendMessage(one, "Where is Bern?");
  await answers(one, 1);
  two = await openPage(context, url);
  await lists(["Where is Bern?"]);
  await two.click("text=Where is Bern?");
  await answers(two, 1);
  assert.deepEqual(await texts(two, "ol li"), await texts(one, "ol li"));
});

test("both tabs see an answer grow", async () => {
  // retries with the next answer if a page paused during an answer and therefore missed states
  for (let fewestStates = 0; fewestStates <= 3; ) {
    const seen = [await watch(one), await watch(two)];
    await sendMessage(two, `And Basel ${++count}?`);
    for (const page of [one, two]) await answers(page, count);
    const drafts = await Promise.all(seen.map(async (growing) => (await growing()).filter((text) => text.includes(`Basel ${count}`))));
    for (const texts of drafts) texts.slice(1).forEach((text, index) => assert.ok(text.startsWith(texts[index]!)));
    fewestStates = Math.min(...drafts.map(({ length }) => length));
  }
});

test("the sidebars of both tabs list the newest conversation first", async () => {
  await one.click("text=New chat");
  await sendMessage(one, "A second one");
  await lists(["A second one", "Where is Bern?"]);
  await answers(one, 1);
  await sendMessage(two, "And Thun?");
  await lists(["Where is Bern?", "A second one"]);
  await answers(two, ++count);
});

test("messages that are sent offline are answered later", async () => {
  await context.setOffline(true);
  await sendMessage(two, "And Chur?");
  await until("the page shows them", async () => (await texts(two, ".user")).includes("And Chur?"));
  await context.setOffline(false);
  await answers(two, ++count);
});

test("a conversation is renamed", async () => {
  one.once("dialog", (dialog) => void dialog.accept("Thun"));
  await one.click("nav li:has-text('A second one') [title=Rename]");
  await lists(["Thun", "Where is Bern?"]);
});

test("a conversation that one tab deletes ends in the other", async () => {
  await one.click("nav li:has-text('Where is Bern?') [title=Delete]");
  await lists(["Thun"]);
  await two.waitForSelector("[role=status]:has-text('destroyed')");
  assert.deepEqual(await texts(two, "ol li"), []);
  assert.ok(await two.isDisabled("[name=text]"));
});

test("neither a page nor another user writes or reads what is not theirs", async () => {
  const login = async (name: string) => (await (await fetch(`${url}/login`, { method: "POST", body: name })).json()) as { token: string; threadkeep: string };
  const { token, threadkeep } = await login("Grace");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const state = { messages: [{ role: "assistant", text: "Trust me." }] };
  const response = await fetch(`${threadkeep}/v1/threads`, { method: "POST", headers, body: JSON.stringify({ state }) });
  assert.equal(response.status, 403);
  const { threads } = (await (await fetch(`${threadkeep}/v1/threads`, { headers })).json()) as { threads: unknown[] };
  assert.deepEqual(threads, []);
});

test("Ctrl-C stops all processes of the example", async () => {
  const { threadkeep } = (await (await fetch(`${url}/login`, { method: "POST", body: "Ada" })).json()) as { threadkeep: string };
  ctrlC();
  if (example.exitCode === null) await once(example, "exit");
  for (const address of [url, threadkeep]) await assert.rejects(fetch(address));
});
