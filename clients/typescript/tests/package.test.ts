import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const installed = join(import.meta.dirname, "..", "node_modules", "threadkeep");
const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));

async function sizeOf(code: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: import.meta.dirname },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    external: ["react"],
    logLevel: "error",
  });
  return gzipSync(outputFiles[0]!.text, { level: 9 }).length;
}

test("all of the client takes at most 12 KiB, and 17 KiB with the hooks", async () => {
  const client = await sizeOf('export * from "threadkeep"');
  const both = await sizeOf('export * from "threadkeep"; export * from "threadkeep/react"');
  console.log(`the client takes ${client} bytes, with the hooks ${both}`);
  assert.ok(client <= 12 * 1024);
  assert.ok(both <= 17 * 1024);
});

test("code that is not imported is not bundled", async () => {
  const [errors, id] = await Promise.all([
    sizeOf('export { ThreadkeepError } from "threadkeep"'),
    sizeOf('export { threadIdFor } from "threadkeep"'),
  ]);
  assert.ok(errors < 1_000 && id < 500, `${errors} and ${id}`);
});

test("each entry point for pages and back ends loads on its own, without the frameworks", () => {
  // tests/typescript-adapters.sh checks the adapters
  for (const name of [".", "./react", "./admin"]) {
    const code = `import(${JSON.stringify(name.replace(".", "threadkeep"))}).then((all) => console.log(Object.keys(all).length))`;
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", code], {
      cwd: join(import.meta.dirname, ".."),
      encoding: "utf8",
    });
    assert.ok(Number(output) > 0, name);
  }
});

test("the package has no dependencies and no install script, and unpacks to less than 1.5 MB", () => {
  assert.equal(manifest.dependencies, undefined);
  assert.ok(Object.keys(manifest.scripts).every((name) => !name.includes("install")));
  assert.equal(manifest.sideEffects, false);
  const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
  const bytes = files.map((file) => statSync(join(installed, file))).reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
  console.log(`the package unpacks to ${bytes} bytes`);
  assert.ok(bytes < 1_500_000);
  for (const file of ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs/calls.md"]) assert.ok(files.includes(file), file);
});

test("each entry point names its types first, and has them", () => {
  for (const [name, entry] of Object.entries<{ types: string; default: string } | string>(manifest.exports)) {
    if (typeof entry === "string") continue;
    assert.deepEqual(Object.keys(entry), ["types", "default"], name);
    for (const file of Object.values(entry)) assert.ok(statSync(join(installed, file)).size > 0, file);
  }
});

test("the client and the hooks use nothing from node:", () => {
  const dist = join(installed, "dist");
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js") || file.startsWith("adapters")) continue;
    assert.doesNotMatch(readFileSync(join(dist, file), "utf8"), /["']node:|\bBuffer\b|\brequire\(/, file);
  }
});
