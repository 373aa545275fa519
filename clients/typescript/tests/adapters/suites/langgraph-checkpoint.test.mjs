// Runs LangGraph's published test suite for checkpoint savers, unmodified.

import { randomUUID } from "node:crypto";
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { createAdmin } from "threadkeep/admin";
import { ThreadkeepSaver } from "threadkeep/langgraph";
import { options } from "../support/servers.mjs";

const admin = createAdmin(options());
const prefixes = new Map();

const initializer = {
  checkpointerName: "ThreadkeepSaver",
  createCheckpointer() {
    const prefix = randomUUID().slice(0, 8);
    const saver = new ThreadkeepSaver(options(0, { prefix }));
    prefixes.set(saver, prefix);
    return saver;
  },
  async destroyCheckpointer(saver) {
    let cursor;
    do {
      const page = await admin.namespaces({ cursor, limit: 100 });
      for (const { namespace } of page.items) {
        if (namespace.startsWith(prefixes.get(saver) + ".")) await admin.kv(namespace).clear();
      }
      cursor = page.next;
    } while (cursor);
  },
};

specTest(initializer);
deltaChannelHistoryTests(initializer);
