// Records PROGRAM's demo as numbered images in DIRECTORY, for record-demo.sh. Usage: record_demo.mjs PROGRAM DIRECTORY

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

// `require` uses NODE_PATH, but `import` does not
const { chromium } = createRequire(import.meta.url)("playwright-core");
const [program, directory] = process.argv.slice(2);
const FRAME_MS = 500;

const demo = spawn(program, ["demo", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
process.on("exit", () => demo.kill());
let link;
for await (const line of createInterface({ input: demo.stderr })) {
  link = /http\S+#once=\S+/.exec(line)?.[0];
  if (link) break;
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const context = await browser.newContext({ viewport: { width: 1200, height: 700 }, reducedMotion: "reduce", colorScheme: "light" });
const page = await context.newPage();

let frames = 0;
async function record(seconds) {
  for (const end = frames + (seconds * 1000) / FRAME_MS; frames < end; ) {
    const next = new Promise((resolve) => setTimeout(resolve, FRAME_MS));
    await page.screenshot({ path: join(directory, `${String(frames++).padStart(4, "0")}.png`) });
    await next;
  }
}

await page.goto(link);
await page.getByRole("link", { name: "Threads", exact: true }).click();
await page.getByText("Live: two writers and a model").first().waitFor();
await record(2);
await page.getByText("Live: two writers and a model").first().click();
await page.locator(".status.on").waitFor();
await record(12);
await page.getByLabel("Conversation").selectOption("the history");
await record(6);

await browser.close();
process.exit();
