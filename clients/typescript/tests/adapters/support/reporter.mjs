import { basename } from "node:path";

const store = process.env.ADAPTERS_STORE;

/** Prints a line with the name and the counts of each suite. */
export default class Summary {
  onTestRunEnd(modules) {
    for (const module of [...modules].sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1))) {
      const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
      for (const test of module.children.allTests()) counts[test.result().state]++;
      const name = module.meta().suite ?? `threadkeep's own: ${basename(module.moduleId, ".test.mjs")}`;
      const { passed, failed, skipped, pending } = counts;
      console.log(`suite ${name} (${store}): ${passed} passed, ${failed} failed, ${skipped + pending} skipped`);
    }
  }
}
