/** Runs the programs of README.md. adapters/samples.test.mjs runs the programs for back-end frameworks. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { transformSync } from "esbuild";
import { bundle, openPage, startBrowser, startSite } from "./support/browser.js";
import { API_KEY, startServer } from "./support/server.js";
import { until } from "./support/until.js";

const root = join(import.meta.dirname, "..");
const samples = join(root, "samples");
const readme = readFileSync(join(root, "node_modules/threadkeep/README.md"), "utf8");

function program(title: string): string {
  const section = readme.split("\n## ").find((text) => text.startsWith(title + "\n"));
  return /```tsx?\n(.*?)```/s.exec(section!)![1]!;
}

/** Joins three samples that use one thread. Adds a task that changes and ends it while the last one watches events. */
const conversation = [
  program("A conversation"),
  'const answer = async (_: { signal: AbortSignal }) => ({ role: "assistant" as const, content: "Hi" });',
  program("Turns"),
  `void (async () => {
    for (let isOpen = false; !isOpen; ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      isOpen = /^threadkeep_event_streams\\S* 1$/m.test(await (await fetch("http://127.0.0.1:8080/metrics")).text());
    }
    await thread.increment("turns");
    await thread.destroy();
  })();`,
  program("Events"),
].join("\n");
const webhooks = readFileSync(join(process.env["REPOSITORY"]!, "docs/webhooks.md"), "utf8");
const verification = /```ts\n(.*?)```/s.exec(webhooks)![1]!;
const twoTabs = program("Two tabs, with the hook");
const toolCalls = program("Tool calls that run once");

before(() => {
  rmSync(samples, { recursive: true, force: true });
  mkdirSync(samples);
  writeFileSync(join(samples, "conversation.ts"), conversation);
  writeFileSync(join(samples, "two-tabs.tsx"), twoTabs);
  writeFileSync(join(samples, "tool-calls.ts"), toolCalls);
  writeFileSync(join(samples, "verify.ts"), verification);
  const lib = ["es2022", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"];
  const compilerOptions = { strict: true, noEmit: true, target: "es2022", lib, module: "esnext", moduleResolution: "bundler", jsx: "react-jsx", types: ["node"] };
  writeFileSync(join(samples, "tsconfig.json"), JSON.stringify({ compilerOptions }));
});

test("the programs compile", () => {
  const tsc = join(process.env["PACKAGE"]!, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", samples], { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});

test("the conversation, its turn and its events run in Node", async () => {
  const { url } = await startServer();
  const { code } = transformSync(conversation, { loader: "ts", target: "es2022" });
  const file = join(samples, "conversation.js");
  writeFileSync(file, code.replaceAll("http://127.0.0.1:8080", url));
  const output = execFileSync(process.execPath, [file], { encoding: "utf8", timeout: 600_000 });
  assert.equal(output, "[ { role: 'user', content: 'Hello' } ]\n[ 'turns' ]\n");
});

test("the tool calls run in Node, once", async () => {
  const { url } = await startServer();
  const file = join(samples, "tool-calls.js");
  writeFileSync(file, transformSync(toolCalls, { loader: "ts", target: "es2022" }).code);
  const env = { ...process.env, THREADKEEP_URL: url, THREADKEEP_API_KEY: API_KEY };
  const output = execFileSync(process.execPath, [file], { encoding: "utf8", env, timeout: 600_000 });
  assert.equal(output, "first sent to ada@example.com 1\nsecond sent to ada@example.com 1\n");
});

test("the code of docs/webhooks.md verifies deliveries", async () => {
  const file = join(samples, "verify.mjs");
  writeFileSync(file, transformSync(verification, { loader: "ts", target: "es2022" }).code);
  type Verify = (body: string, headers: Record<string, string>, secret: string, now?: number) => boolean;
  const { verify } = (await import(file)) as { verify: Verify };
  // the example from the reference libraries of Standard Webhooks
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const [body, now] = ['{"test": 2432232314}', 1_614_265_330];
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": String(now),
    "webhook-signature": "v1,xx v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  assert.equal(verify(body, headers, secret, now), true);
  assert.equal(verify(body + " ", headers, secret, now), false);
  assert.equal(verify(body, headers, secret, now + 301), false);
  assert.equal(verify(body, headers, secret), false);
  assert.equal(verify(body, {}, secret, now), false);
});

test("two tabs with the hook show each other's messages", async () => {
  const site = await startSite((await startServer()).url, await bundle(join(samples, "two-tabs.tsx")));
  const context = await (await startBrowser()).newContext();
  const tabs = [await openPage(context, site.url), await openPage(context, site.url)];
  for (const [index, tab] of tabs.entries()) {
    await tab.fill("[name=text]", `from tab ${index}`);
    await tab.press("[name=text]", "Enter");
    for (const other of tabs) {
      await until(`both show message ${index}`, async () => (await other.locator("p").allInnerTexts())[index] === `from tab ${index}`);
    }
  }
});
