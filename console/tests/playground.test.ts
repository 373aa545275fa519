import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { afterEach, before, test } from "node:test";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { API_KEY, type Server, noErrors, openConsole, startServer, until } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

/** Runs a command line that the page offers, as a person that pastes it. */
async function run(page: Page, name: string): Promise<string> {
  const line = (await page.getByLabel(name, { exact: true }).textContent())!;
  assert.ok(!line.includes(API_KEY), line);
  const { stdout } = await promisify(execFile)("sh", ["-c", line], { env: { PATH: process.env["PATH"], API_KEY } });
  return stdout;
}

test("messages of two panes arrive in both, and each action has a command that does the same", async () => {
  const page = await openConsole(server, "#/playground");
  const made = JSON.parse(await run(page, "command to create a thread")) as { id: string; version: number };
  assert.equal(made.version, 1);
  await page.getByRole("button", { name: "Create a thread", exact: true }).click();
  const [left, right] = [page.getByLabel("Left pane"), page.getByLabel("Right pane")];
  for (const pane of [left, right]) await pane.getByText("listening").waitFor();

  await page.getByRole("button", { name: "Push from both at once" }).click();
  for (const pane of [left, right]) for (const side of ["left", "right"]) await pane.getByText(`From the ${side} pane`).waitFor();

  await left.getByRole("textbox").fill("Typed on the left");
  await left.getByRole("button", { name: "Push" }).click();
  await right.getByText("Typed on the left").waitFor();
  await right.getByRole("button", { name: "Push" }).click();
  await left.getByText("Hello from the right pane").waitFor();

  assert.match(await run(page, "command to push"), /"length":5/);
  for (const pane of [left, right]) await pane.getByText("Hello", { exact: true }).waitFor();
  const read = JSON.parse(await run(page, "command to read")) as { content: string }[];
  assert.equal(read.length, 5);

  await page.getByRole("link", { name: "Open its page" }).click();
  await page.getByRole("log").getByText("Typed on the left").waitFor();
});

test("the command to listen hears a push", async () => {
  const page = await openConsole(server, "#/playground");
  await page.getByRole("button", { name: "Create a thread", exact: true }).click();
  await page.getByLabel("Left pane").getByText("listening").waitFor();
  const line = (await page.getByLabel("command to listen", { exact: true }).textContent())!;
  const child = execFile("sh", ["-c", `exec ${line}`]);
  let heard = "";
  child.stdout!.on("data", (data) => (heard += String(data)));
  await until("it listens", () => heard.includes("retry:"));

  await page.getByRole("button", { name: "Push from both at once" }).click();

  await until("it hears both", () => heard.includes("From the left pane") && heard.includes("From the right pane"));
  child.kill();
});
