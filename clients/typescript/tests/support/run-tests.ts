import { spawn } from "node:child_process";
import { once } from "node:events";

interface Chromium {
  launchServer(options: { executablePath: string; args: string[] }): Promise<{ wsEndpoint(): string; close(): Promise<void> }>;
}

/** Runs test files with one shared browser. Runs three files at a time, because tests mostly wait. */
export async function runTests(chromium: Chromium, args: string[] = []): Promise<void> {
  const browser = await chromium.launchServer({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", ...args],
  });
  const options = ["--test-concurrency=3", "--test-timeout=1200000", "--test-reporter=spec"];
  const env = { ...process.env, BROWSER: browser.wsEndpoint() };
  const tests = spawn(process.execPath, ["--test", ...options, ...process.argv.slice(2)], { env, stdio: "inherit" });
  const [code] = await once(tests, "exit");
  await browser.close();
  process.exitCode = (code as number | null) ?? 1;
}
