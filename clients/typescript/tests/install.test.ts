import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { transformSync } from "esbuild";
import { API_KEY, startServer } from "./support/server.js";

const folder = mkdtempSync(join(tmpdir(), "threadkeep-install-"));
after(() => rmSync(folder, { recursive: true }));
const checkout = join(folder, "typescript");
const options = { encoding: "utf8", timeout: 600_000 } as const;

const client = `
import { createClient, threadIdFor } from "threadkeep";

const thread = createClient().thread(await threadIdFor(process.argv[2]!));
await thread.push("messages", "Hello");
console.log(await thread.get("messages"));
// @ts-expect-error: an ID is a text
createClient().thread(7);
`;

const store = `
import session from "express-session";
import { ThreadkeepStore } from "threadkeep/express-session";

const store: session.Store = new ThreadkeepStore();
console.log(store instanceof session.Store);
// @ts-expect-error: a prefix is a text
new ThreadkeepStore({ prefix: 7 });
// @ts-expect-error: a store has no such method
new ThreadkeepStore().unknown();
`;

/** Creates a project in which only this package is installed. No parent folder contains packages. */
function install(name: string, ...args: string[]): string {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...args], { ...options, cwd: project });
  return project;
}

function run(project: string, code: string, ...args: string[]): string {
  const compilerOptions = { strict: true, noEmit: true, target: "es2022", module: "nodenext", types: ["node"], lib: ["es2022", "dom", "esnext.disposable"] };
  const typeRoots = [join(process.env["PACKAGE"]!, "node_modules/@types"), join(project, "node_modules/@types")];
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots } }));
  writeFileSync(join(project, "program.ts"), code);
  const tsc = join(process.env["PACKAGE"]!, "node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", project], options);
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
  writeFileSync(join(project, "program.js"), transformSync(code.replaceAll(/\/\/ @ts-expect-error.*\n.*\n/g, ""), { loader: "ts" }).code);
  return execFileSync(process.execPath, [join(project, "program.js"), ...args], options);
}

before(async () => {
  const unbuilt = (file: string) => !["dist", "node_modules"].includes(basename(file));
  cpSync(process.env["PACKAGE"]!, checkout, { recursive: true, filter: unbuilt });
  const { url } = await startServer();
  Object.assign(process.env, { THREADKEEP_URL: url, THREADKEEP_API_KEY: API_KEY });
});

test("`npm install <folder>` builds the package, and links it", () => {
  const project = install("linked", checkout);
  assert.ok(lstatSync(join(project, "node_modules/threadkeep")).isSymbolicLink());
  assert.equal(run(project, client, "linked"), "[ 'Hello' ]\n");
});

test("`npm install --install-links <folder>` builds and copies the package, whose adapters find their frameworks", () => {
  for (const name of ["dist", "node_modules"]) rmSync(join(checkout, name), { recursive: true, force: true });
  const project = install("copied", "--omit=dev", "--install-links", checkout, "express-session@1.19.0", "@types/express-session@1.19.0");
  assert.equal(run(project, client, "copied"), "[ 'Hello' ]\n");
  assert.equal(run(project, store), "true\n");
});
