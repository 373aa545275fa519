// Tests that an adapter imports at most its own framework. Some adapters import only their framework's types.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../node_modules/threadkeep/", import.meta.url));
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

function packagesOf(file, seen = new Set()) {
  if (seen.has(file)) return new Set();
  seen.add(file);
  const packages = new Set();
  for (const [, name] of readFileSync(file, "utf8").matchAll(/^(?:import |(?:import|export) [\w\s{},*$]+ from )"([^"]+)";/gm)) {
    if (!name.startsWith(".")) packages.add(name);
    else for (const found of packagesOf(join(dirname(file), name), seen)) packages.add(found);
  }
  return packages;
}

it.each([
  ["agentkit", ["@inngest/agent-kit"]],
  ["ai", []],
  ["ethos", []],
  ["express-session", ["express-session"]],
  ["keyv", ["node:events"]],
  ["langgraph", ["@langchain/langgraph-checkpoint"]],
  ["openai-agents", []],
])("threadkeep/%s imports %j", (name, expected) => {
  expect([...packagesOf(join(root, exports[`./${name}`].default))]).toEqual(expected);
});

it("has an entry point for each adapter", () => {
  const files = readdirSync(join(root, "dist/adapters"), { recursive: true });
  const shared = ["entries.js", "merges.js", "names.js"];
  const entries = files.filter((file) => /^([^/]+\/index|[^/]+)\.js$/.test(file) && !shared.includes(file));
  const paths = Object.values(exports).map((entry) => join(root, entry.default ?? entry));
  expect(entries.filter((file) => !paths.includes(join(root, "dist/adapters", file)))).toEqual([]);
});
