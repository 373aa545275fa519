import assert from "node:assert/strict";
import { before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { bundle, openPage, type Site, startBrowser, startSite } from "./support/browser.js";
import { startServer } from "./support/server.js";
import { until } from "./support/until.js";

let server: string;
let script: string;
let browser: Browser;
let App: (props: { options: object }) => React.ReactNode;

async function load(): Promise<typeof App> {
  const dir = mkdtempSync(join(import.meta.dirname, "ssr-"));
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "pages/app.tsx")],
    bundle: true,
    packages: "external",
    platform: "node",
    write: false,
    format: "esm",
    jsx: "automatic",
    tsconfigRaw: "{}",
  });
  const file = join(dir, "app.mjs");
  writeFileSync(file, outputFiles[0]!.text);
  return (await import(pathToFileURL(file).href)).App;
}

let requests = 0;
before(async () => {
  server = (await startServer()).url;
  script = await bundle("app.tsx");
  browser = await startBrowser();
  App = await load();
});
beforeEach(() => {
  requests = 0;
});

for (const options of [{ strict: true }, { suspense: true }]) {
  test(`a server renders the initial state without a request, and a page hydrates it: ${JSON.stringify(options)}`, async () => {
    const initialState = { list: ["from the server"] };
    const all = { ...options, initialState, hydrate: true };
    const counting = async () => (requests++, new Response("{}"));
    const html = renderToString(createElement(App, { options: { ...all, client: { baseUrl: "http://fake", fetch: counting } } }));
    assert.match(html, /from the server/);
    assert.equal(requests, 0);
    const site: Site = await startSite(server, script, html);
    site.proxy.fault = () => ({ delayMs: 100 });
    const page = await openPage(await browser.newContext(), site.url);
    await page.evaluate((options) => (globalThis as any).page.start(options), all);
    const views = () => page.evaluate("page.views") as Promise<{ state: object; status: string }[]>;
    await until("it is live", async () => (await views()).at(-1)?.status === "live");
    assert.deepEqual([(await views())[0]!.state, (await views())[0]!.status], [initialState, "loading"]);
    assert.deepEqual((await views()).at(-1)!.state, {});
    assert.equal(await page.evaluate("globalThis.hydrationError"), undefined);
    assert.equal(await page.$("em"), null);
    await page.context().close();
  });
}
