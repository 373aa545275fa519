import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { bundle, openPage, type Site, startBrowser, startSite } from "./support/browser.js";
import { startServer } from "./support/server.js";
import { gate, until } from "./support/until.js";

const VISITS = Number(process.env["VISITS"] ?? 20);
let browser: Browser;
let site: Site;
before(async () => {
  browser = await startBrowser();
  site = await startSite((await startServer()).url, await bundle("visit.ts"));
});

/**
 * Returns a URL with a host that does not have cookies yet, so that its page acts as a new visitor. This is faster than
 * browser contexts: creating 200 contexts would take minutes.
 */
const urlOfHost = (index: number) => site.url.replace("127.0.0.1", `visitor-${index}.localhost`);

const visit = (text: string) => `visit(${JSON.stringify(text)})`;

test(`${VISITS} first visits at once lose no message`, async () => {
  site.proxy.fault = () => ({ delayMs: Math.random() * 30 });
  const context = await browser.newContext();
  const pages: Page[] = [];
  while (pages.length < VISITS) {
    const batch = Array.from({ length: 10 }, (_, index) => openPage(context, urlOfHost(pages.length + index)));
    pages.push(...(await Promise.all(batch)));
  }
  const visits = await Promise.all(pages.map((page, index) => page.evaluate(visit(`hello ${index}`)) as Promise<any>));
  visits.forEach(({ messages, version }, index) => {
    assert.deepEqual(messages, [`hello ${index}`, `hello ${index} again`]);
    assert.equal(version, 1);
  });
  assert.equal(new Set(visits.map(({ id }) => id)).size, VISITS);
  await context.close();
});

test("the first visits of ten tabs of one browser are one thread", async () => {
  site.proxy.fault = () => ({ delayMs: Math.random() * 50 });
  const context = await browser.newContext();
  const pages = [];
  for (let index = 0; index < 10; index++) pages.push(await openPage(context, site.url));
  const visits = await Promise.all(pages.map((page, index) => page.evaluate(visit(`hello ${index}`)) as Promise<any>));
  assert.equal(new Set(visits.map(({ id }) => id)).size, 1);
  await context.close();
});

test("a first visit that waits for another tab ends at once when it is aborted", async () => {
  site.proxy.requests.length = 0;
  const held = gate();
  site.proxy.fault = () => ({ after: held.opened });
  const context = await browser.newContext();
  const [one, two] = [await openPage(context, site.url), await openPage(context, site.url)];
  const first = one.evaluate("createClient({}).current().read()");
  await until("the first visit is on its way", () => site.proxy.requests.length);
  const signal = "AbortSignal.timeout(100)";
  const name = await two.evaluate(`createClient({}).current().read({ signal: ${signal} }).catch(({ name }) => name)`);
  assert.equal(name, "TimeoutError");
  held.open();
  await first;
  await context.close();
});
