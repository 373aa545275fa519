import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { startServer } from "./support/server.js";

const modules = process.env["RUNTIMES"]!;
const script = join(import.meta.dirname, "smoke-run.js");
let baseUrl: string;
before(async () => {
  baseUrl = (await startServer()).url;
});

for (const [name, program, ...options] of [
  ["Node 22", "node-22/bin/node"],
  ["Node 24", "node-24/bin/node"],
  ["Bun", "@oven/bun-linux-x64/bin/bun"],
  ["Deno", "@deno/linux-x64-glibc/deno", "run", "--allow-net", "--allow-env=BASE_URL"],
] as const) {
  test(`the package works in ${name}`, async () => {
    const path = join(modules, program);
    assert.ok(existsSync(path), path);
    const env = { BASE_URL: baseUrl, PATH: process.env["PATH"]! };
    const { stdout } = await promisify(execFile)(path, [...options, script], { env, timeout: 600_000 });
    assert.equal(stdout, "the client works\n");
  });
}
