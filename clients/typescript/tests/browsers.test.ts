/** Browsers other than Chromium: those that Playwright installed, and the Firefox of the system. */

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
  webkit: undefined,
};

/** Opens a page in a browser of a name, if there is one. */
function opener(name: keyof typeof installed): Open | undefined {
  const isInstalled = existsSync(installed[name].executablePath());
  const program = programs[name];
  const found = program && existsSync(program) ? program : undefined;
  if (isInstalled || (name === "chromium" && found)) {
    return async (url) => {
      const browser = await installed[name].launch(isInstalled ? {} : { executablePath: found!, args: ["--no-sandbox"] });
      await (await browser.newPage()).goto(url);
      return () => browser.close();
    };
  }
  // Playwright drives a Firefox of its own alone
  return found ? (url) => runFirefox(found, url) : undefined;
}

async function runFirefox(program: string, url: string): Promise<Close> {
  const profile = mkdtempSync(join(tmpdir(), "threadkeep-firefox-"));
  const child = spawn(program, ["--headless", "--no-remote", "--profile", profile, url], { stdio: "ignore", detached: true });
  return async () => {
    process.kill(-child.pid!, "SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
}

for (const name of ["chromium", "firefox", "webkit"] as const) {
  const open = opener(name);
  const skip = !open && `there is no ${name} here: npx playwright-core install ${name}`;
  test(`a first visit and two tabs work in ${name}`, { skip, timeout: 120_000 }, async () => {
    const site = await startSite((await startServer()).url, await bundle("by-itself.tsx"));
    const paths = () => site.proxy.seen.map(({ path }) => path);
    const outcome = () => paths().find((path) => path.startsWith("/v1/outcome?"));
    const close = await open!(site.url);
    try {
      await until("the page is done", outcome, 100_000);
    } finally {
      await close();
    }
    const [visit, ...steps] = JSON.parse(decodeURIComponent(outcome()!.split("?")[1]!));
    assert.deepEqual(visit.messages, ["hello", "hello again"]);
    assert.deepEqual(steps, ["live", "live", "destroyed"]);
    assert.equal(paths().filter((path) => path.endsWith("/events")).length, 2, "the tabs share a stream");
  });
}
