import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { STORE, newContext, noErrors } from "./support/console.js";

const SCREENSHOTS = join(process.env["SCREENSHOTS"]!, STORE);

let demo: ChildProcess;
let link: string;
before(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  demo = spawn(process.env["THREADKEEP_BIN"]!, ["demo", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "inherit", "pipe"] });
  for await (const line of createInterface({ input: demo.stderr! })) {
    link = /http\S+#once=\S+/.exec(line)?.[0] ?? "";
    if (link) break;
  }
});
after(async () => {
  if (demo.exitCode !== null) return;
  demo.kill("SIGKILL");
  await once(demo, "exit");
});

test("the link of the demo opens a console with a thread that changes continuously", async () => {
  const page = await (await newContext({ reducedMotion: "reduce" })).newPage();
  await page.goto(link);
  await page.locator(".shell").waitFor();
  await page.getByRole("link", { name: "Threads", exact: true }).click();

  for (const title of ["Three days in Lisbon", "Agent: compare heat pumps", "Support: a long history", "Live: two writers and a model"]) {
    await page.getByText(title).first().waitFor();
  }
  await page.screenshot({ path: join(SCREENSHOTS, "demo-threads.png") });

  await page.getByText("Live: two writers and a model").first().click();
  await page.locator(".status.on").waitFor();
  const chat = page.getByRole("log");
  await chat.getByText("Is the staging server up?").first().waitFor();
  await chat.getByText("It is up, and all probes pass.").first().waitFor();
  await page.screenshot({ path: join(SCREENSHOTS, "demo-live.png") });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: join(SCREENSHOTS, "demo-live-small.png") });

  assert.equal(demo.exitCode, null);
  await noErrors();
});
