/**
 * Tests browsers other than Chromium. If Playwright's browsers are not installed, uses firefox-esr and the WebKitGTK
 * MiniBrowser from Debian packages. Playwright cannot drive those two, so the test only opens a page in them.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chromium, firefox, webkit } from "playwright-core";
import { bundle, startSite } from "./support/browser.js";
import { startServer } from "./support/server.js";
import { until } from "./support/until.js";

type Close = () => Promise<void>;
type Open = (url: string) => Promise<Close>;

const installed = { chromium, firefox, webkit };
const programs = {
  chromium: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  firefox: process.env["FIREFOX"] ?? "/usr/bin/firefox-esr",
  webkit: process.env["WEBKIT"] ?? "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser",
};
const packages = { chromium: "chromium", firefox: "firefox-esr", webkit: "libwebkit2gtk-4.1-0 xvfb xauth" };
const XVFB = "/usr/bin/xvfb-run";

function opener(name: keyof typeof installed): Open | undefined {
  const isInstalled = existsSync(installed[name].executablePath());
  const program = programs[name];
  if (isInstalled || (name === "chromium" && existsSync(program))) {
    return async (url) => {
      const browser = await installed[name].launch(isInstalled ? {} : { executablePath: program, args: ["--no-sandbox"] });
      await (await browser.newPage()).goto(url);
      return () => browser.close();
    };
  }
  if (!existsSync(program) || (name === "webkit" && !existsSync(XVFB))) return undefined;
  return (url) =>
    name === "firefox"
      ? run(program, (profile) => ["--headless", "--no-remote", "--profile", profile, url])
      : run(XVFB, () => ["--auto-servernum", program, "--private", url]);
}

async function run(program: string, args: (directory: string) => string[]): Promise<Close> {
  const directory = mkdtempSync(join(tmpdir(), "threadkeep-browser-"));
  const child = spawn(program, args(directory), { stdio: "ignore", detached: true });
  return async () => {
    process.kill(-child.pid!, "SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };
}

for (const name of ["chromium", "firefox", "webkit"] as const) {
  const open = opener(name);
  const skip = !open && `${name} is not installed: run npx playwright-core install ${name}, or apt-get install ${packages[name]}`;
  test(`a first visit and two tabs work in ${name}`, { skip }, async () => {
    const site = await startSite((await startServer()).url, await bundle("by-itself.tsx"));
    const paths = () => site.proxy.requests.map(({ path }) => path);
    const outcome = () => paths().find((path) => path.startsWith("/v1/outcome?"));
    const close = await open!(site.url);
    try {
      await until("the page is done", outcome);
    } finally {
      await close();
    }
    const seen = JSON.parse(decodeURIComponent(outcome()!.split("?")[1]!));
    assert.ok(Array.isArray(seen), seen);
    const [visit, ...steps] = seen;
    assert.deepEqual(visit.messages, ["hello", "hello again"]);
    assert.deepEqual(steps, ["live", "live", "destroyed"]);
    // When the thread ends, the listening tab releases its lock. The other tab may get the lock before the last event,
    // and then opens a stream.
    const end = site.proxy.requests.findIndex(({ method }) => method === "DELETE");
    const opened = paths().slice(0, end).filter((path) => path.endsWith("/events"));
    assert.equal(opened.length, 2, "the tabs share a stream");
  });
}
