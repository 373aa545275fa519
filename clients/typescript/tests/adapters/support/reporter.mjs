import { readFileSync } from "node:fs";
import { basename } from "node:path";

const store = process.env.ADAPTERS_STORE;

const published = {
  "agent-kit": ["@inngest/agent-kit"],
  ai: ["ai", "ai6", "ai5"],
  "express-session": ["express-session", "express"],
  keyv: ["@keyv/test-suite", "keyv"],
  langgraph: ["@langchain/langgraph"],
  "langgraph-checkpoint": ["@langchain/langgraph-checkpoint-validation", "@langchain/langgraph-checkpoint"],
  "openai-agents": ["@openai/agents"],
};

export default class Summary {
  onTestRunEnd(modules) {
    for (const module of [...modules].sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1))) {
      const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
      for (const test of module.children.allTests()) counts[test.result().state]++;
      const { passed, failed, skipped, pending } = counts;
      const name = nameOf(module.moduleId);
      console.log(`suite ${name} (${store}): ${passed} passed, ${failed} failed, ${skipped + pending} skipped`);
    }
  }
}

function nameOf(path) {
  const file = basename(path, ".test.mjs");
  if (!path.includes("/suites/")) return file;
  return published[file].map(withVersion).join(", ");
}

function withVersion(folder) {
  const text = readFileSync(new URL(`../../node_modules/${folder}/package.json`, import.meta.url), "utf8");
  const { name, version } = JSON.parse(text);
  return `${name} ${version}`;
}
