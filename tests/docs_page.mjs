// Tests the page at /docs and the page in docs/browser.md. Usage: docs_page.mjs DOCS OPENAPI CHAT, where DOCS and CHAT
// are the URLs of the pages, and OPENAPI is the path of the OpenAPI file. Run by docs-page.sh.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// `require` uses NODE_PATH, but `import` does not
const { chromium } = createRequire(import.meta.url)("playwright-core");
const [docs, file, chat] = process.argv.slice(2);
const { tags, paths } = JSON.parse(readFileSync(file, "utf8"));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
  ],
});

const faults = [];

async function open(url) {
  const page = await browser.newPage();
  page.setDefaultTimeout(300_000);
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:") assert.match(hostname, /^(127\.0\.0\.1|localhost)$/, request.url());
  });
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  await page.goto(url);
  return page;
}

// The page lists the groups in document order, all collapsed. Its content security policy does not block its resources.
const page = await open(docs);
const groups = tags.map(({ name }) => name);
await page.locator(`#operations-tag-${groups.at(-1)}`).waitFor();
assert.equal(await page.title(), "threadkeep API");
const ids = await page.locator("[id^=operations-tag-]").evaluateAll((elements) => elements.map(({ id }) => id));
assert.deepEqual(ids, groups.map((name) => `operations-tag-${name}`));
assert.equal(await page.locator(`[data-path^="/"]`).count(), 0, "the groups are not collapsed");
assert.deepEqual(faults, []);
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await background();
await page.locator(".dark-mode-toggle button").click();
assert.notEqual(await background(), light);
await page.close();

// A link to a group expands the group and shows its paths.
const shown = new Set();
for (const group of groups) {
  const page = await open(`${docs}#/${group}`);
  const isInGroup = (operations) => Object.values(operations).some((operation) => operation.tags?.includes(group));
  for (const path of Object.keys(paths).filter((path) => isInGroup(paths[path]))) {
    await page.locator(`[data-path=${JSON.stringify(path)}]`).first().waitFor();
    shown.add(path);
  }
  await page.close();
}
assert.deepEqual([...shown].sort(), Object.keys(paths).sort());
assert.ok(shown.size >= 16);
console.log(`The page shows ${shown.size} paths.`);

await (await open(chat)).getByText('{"messages":[{"role":"user","content":"Hello"}]}').waitFor();
console.log("The page in docs/browser.md shows the message that it sent.");
await browser.close();
