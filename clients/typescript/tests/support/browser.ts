import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { dirname, join, resolve } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Proxy, startProxy } from "./proxy.js";
import { PATIENCE_MS } from "./until.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

export async function startBrowser(): Promise<Browser> {
  const browser = await chromium.connect(process.env["BROWSER"]!);
  closing.push(() => browser.close());
  return browser;
}

/** Bundles a script with the installed package and this run's version of React. `name` is relative to tests/pages. */
export async function bundle(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [resolve(root, "pages", name)],
    bundle: true,
    write: false,
    format: "iife",
    globalName: "unused",
    target: "es2022",
    jsx: "automatic",
    tsconfigRaw: "{}",
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

export interface Site {
  readonly url: string;
  readonly proxy: Proxy;
  cut(): void;
}

/** Serves a page with `script` and `html`, and forwards the page's API calls to `server` through a proxy. */
export async function startSite(server: string, script: string, html = ""): Promise<Site> {
  const proxy = await startProxy(server);
  const site: Server = createServer(async (request, response) => {
    if (request.url!.startsWith("/v1/")) {
      proxy.handle(request, response);
      return;
    }
    const isScript = request.url === "/script.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html; charset=utf-8" });
    response.end(isScript ? script : `<!doctype html><div id="root">${html}</div><script src="/script.js"></script>`);
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  closing.push(() => {
    site.closeAllConnections();
    site.close();
  });
  return { url: `http://127.0.0.1:${(site.address() as { port: number }).port}`, proxy, cut: () => site.closeAllConnections() };
}

export async function openPage(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => console.error("in the page:", error));
  await page.goto(url);
  return page;
}
