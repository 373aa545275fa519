import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after } from "node:test";
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, chromium } from "playwright-core";
import { API_KEY, type Server } from "../../../clients/typescript/tests/support/server.js";
import { PATIENCE_MS, until } from "../../../clients/typescript/tests/support/until.js";

export { API_KEY, STORE, type Server, startServer } from "../../../clients/typescript/tests/support/server.js";
export { until, withLongerTtls } from "../../../clients/typescript/tests/support/until.js";

let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

const contexts: BrowserContext[] = [];
const errors: string[] = [];

/** Opens a browser context, which has its own storage, in the browser that support/run.ts started. */
export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  browser ??= chromium.connect(process.env["BROWSER"]!);
  const context = await (await browser).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  contexts.push(context);
  return context;
}

/** Opens the console without a key. A script error or a Content-Security-Policy violation fails the test. */
export async function openPage(server: Server, context: BrowserContext, fragment = ""): Promise<Page> {
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(String(error.stack)));
  page.on("dialog", (dialog) => {
    errors.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy|TrustedScript|TrustedHTML/.test(message.text())) errors.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^blob:|^data:/.test(request.url()) && new URL(request.url()).origin !== server.url) errors.push(`a request to ${request.url()}`);
  });
  await page.addInitScript(recordTransientContent);
  await page.goto(`${server.url}/console/${fragment}`);
  return page;
}

/** Records announcements and changed rows, because a page shows them for only a few seconds. */
function recordTransientContent(): void {
  const shownTexts = ((globalThis as unknown as { shownTexts: Set<string> }).shownTexts = new Set());
  const record = () => document.querySelectorAll(".announcement, .tree-row.changed").forEach(({ textContent }) => shownTexts.add(textContent!));
  new MutationObserver(record).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}

export function waitUntilShown(page: Page, text: string | RegExp): Promise<void> {
  const texts = () => page.evaluate(() => [...(globalThis as unknown as { shownTexts: Set<string> }).shownTexts]);
  return until(`it has shown ${text}`, async () => (await texts()).some((one) => (typeof text === "string" ? one === text : text.test(one))));
}

export async function openConsole(server: Server, fragment = "#/overview", key = API_KEY, context?: BrowserContext): Promise<Page> {
  const page = await openPage(server, context ?? (await newContext()), fragment);
  await enter(page, key);
  await page.locator(".shell").waitFor();
  return page;
}

export async function enter(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Open" }).click();
}

export async function noErrors(): Promise<void> {
  for (const context of contexts.splice(0)) await context.close();
  assert.deepEqual(errors.splice(0), []);
}

export const pageOf = (id: string, part = "") => `#/threads/${hashOf(id)}${part && "/" + part}`;
export const hashOf = (id: string) => createHash("sha256").update(id).digest("hex").slice(0, 16);

export async function visit(page: Page, fragment: string): Promise<void> {
  await page.evaluate((fragment) => void (location.hash = fragment), fragment);
}

export async function api<T = any>(server: Server, method: string, path: string, body?: unknown, key = API_KEY): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = typeof body === "string" ? body : JSON.stringify(body);
  let response = await fetch(server.url + path, init);
  // retries after a 408, because the server times out if this process pauses for 5 s while it sends a request
  for (let tries = 0; response.status === 408 && tries < 3; tries++) response = await fetch(server.url + path, init);
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return (text ? JSON.parse(text) : undefined) as T;
}

export async function newThread(server: Server, body: unknown = {}): Promise<string> {
  return (await api<{ id: string }>(server, "POST", "/v1/threads", body)).id;
}

export const push = (server: Server, id: string, role: string, content: string) =>
  api(server, "POST", `/v1/threads/${id}/state/messages/push`, { role, content });
