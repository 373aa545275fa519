// The examples of docs/adapters.md compile, and those that need no model and no port run.

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { apiKey, servers } from "./support/servers.mjs";

const folder = new URL("samples/", import.meta.url);
const page = readFileSync(new URL("../node_modules/threadkeep/docs/adapters.md", import.meta.url), "utf8");
const samples = [...page.matchAll(/^## ([^\n]+)\n\n```ts\n(.*?)^```/gms)].map(([, title, code]) => ({ title, code }));
const nameOf = (title) => `${title.toLowerCase().replaceAll(" ", "-")}.ts`;

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "es2022",
    module: "nodenext",
    skipLibCheck: true,
    types: ["node"],
  };
  writeFileSync(new URL("tsconfig.json", folder), JSON.stringify({ compilerOptions }));
  writeFileSync(new URL("package.json", folder), '{"type":"module"}');
  for (const { title, code } of samples) writeFileSync(new URL(nameOf(title), folder), code);
  Object.assign(process.env, { THREADKEEP_URL: servers[0], THREADKEEP_API_KEY: apiKey });
});

it("has an example for each adapter", () => {
  expect(samples).toHaveLength(7);
});

it("has examples that compile", async () => {
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const run = promisify(execFile)(process.execPath, [tsc, "-p", fileURLToPath(folder)]);
  const { stdout } = await run.catch((error) => error);
  expect(stdout).toBe("");
}, 600_000);

it.each(samples.filter(({ title }) => title !== "AgentKit").map(({ title }) => title))("runs the example for %s", async (title) => {
  await import(new URL(nameOf(title), folder));
});
