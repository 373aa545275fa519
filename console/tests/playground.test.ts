import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { afterEach, before, test } from "node:test";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { API_KEY, type Server, noErrors, openConsole, startServer, until } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

async function run(page: Page, name: string): Promise<string> {
  const line = (await page.getByLabel(name, { exact: true }).textContent())!;
  assert.ok(!line.includes(API_KEY), line);
  const { stdout } = await promisify(execFile)("sh", ["-c", line], { env: { PATH: process.env["PATH"], API_KEY } });
  return stdout;
}

test("messages of each pane arrive in both panes, and each action has an equivalent command", async () => {
  const page = await openConsole(server, "#/playground");
  const created = JSON.parse(await run(page, "command to create a thread")) as { id: string; version: number };
  assert.equal(created.version, 1);
  await page.getByRole("button", { name: "Create a thread", exact: true }).click();
  const [left, right] = ["Left pane", "Right pane"].map((name) => page.getByRole("region", { name })) as [Locator, Locator];
  for (const pane of [left, right]) await pane.getByText("listening").waitFor();

  await page.getByRole("button", { name: "Add from both at once" }).click();
  for (const pane of [left, right]) for (const side of ["left", "right"]) await pane.getByRole("listitem").getByText(`From the ${side} pane`).waitFor();

  await left.getByRole("textbox").fill("Typed on the left");
  await left.getByRole("button", { name: "Add", exact: true }).click();
  await right.getByRole("listitem").getByText("Typed on the left").waitFor();
  await right.getByRole("button", { name: "Add", exact: true }).click();
  await left.getByRole("listitem").getByText("Hello from the right pane").waitFor();

  await left.getByRole("textbox").fill("It's typed, but not pushed");
  assert.match(await run(page, "command of the left pane"), /"length":5/);
  assert.match(await run(page, "command of the right pane"), /"length":6/);
  await run(page, "command to push from both");
  const read = JSON.parse(await run(page, "command to read")) as { role: string; content: string }[];
  assert.deepEqual(read.slice(4, 6), [{ role: "user", content: "It's typed, but not pushed" }, { role: "assistant", content: "Hello from the right pane" }]);
  assert.deepEqual(read.slice(6).map(({ role }) => role).sort(), ["assistant", "user"]);
  for (const pane of [left, right]) await pane.getByRole("listitem").getByText("It's typed, but not pushed").waitFor();

  await page.getByRole("link", { name: "Open its page" }).click();
  await page.getByRole("log").getByText("Typed on the left").waitFor();
});

test("the command to listen receives a push", async () => {
  const page = await openConsole(server, "#/playground");
  await page.getByRole("button", { name: "Create a thread", exact: true }).click();
  await page.getByLabel("Left pane").getByText("listening").waitFor();
  const line = (await page.getByLabel("command to listen", { exact: true }).textContent())!;
  const child = execFile("sh", ["-c", `exec ${line}`]);
  let output = "";
  child.stdout!.on("data", (data) => (output += String(data)));
  await until("it listens", () => output.includes("retry:"));

  await page.getByRole("button", { name: "Add from both at once" }).click();

  await until("it receives both", () => output.includes("From the left pane") && output.includes("From the right pane"));
  child.kill();
});
