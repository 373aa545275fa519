// Tests the guarantees of every adapter. Two processes do not overwrite each other's data. A retry does not store
// anything twice. Data that is too large causes an error and changes nothing. An unavailable server causes an error.

import { threadIdFor } from "threadkeep";
import { describe, expect, it } from "vitest";
import { inTwoProcesses } from "./support/processes.mjs";
import { firstWrite, startProxy } from "./support/proxy.mjs";
import { client, isLong, options, servers, unique } from "./support/servers.mjs";

async function appendTwice(open, fault, extra) {
  const proxy = await startProxy(servers[0], firstWrite(fault));
  try {
    const name = unique("fault");
    const list = open({ ...options(0, extra), baseUrl: proxy.url }, name);
    await list.append("a");
    await list.append("b");
    return await open(options(), name).items();
  } finally {
    proxy.stop();
  }
}

const adapters = ["agentkit", "ai", "ethos", "express-session", "keyv", "langgraph", "openai-agents"];

describe.each(adapters)("%s", async (adapter) => {
  const { open, tooLarge } = await import(`./support/adapters/${adapter}.mjs`);

  it("loses no item when two processes append concurrently", async () => {
    const name = unique("processes");
    const count = isLong ? 100 : 24;

    await inTwoProcesses("appender", "append", { adapter, name, count });

    const expected = [0, 1].flatMap((number) => Array.from({ length: count }, (_, index) => `${number}-${index}`));
    expect((await open(options(), name).items()).sort()).toEqual(expected.sort());
  });

  it("stores a write once when its response is lost", async () => {
    expect(await appendTwice(open, "lose")).toEqual(["a", "b"]);
  });

  it("retries a write after a 503 response", async () => {
    expect(await appendTwice(open, "refuse")).toEqual(["a", "b"]);
  });

  it("retries a write that timed out", async () => {
    expect(await appendTwice(open, "hang", { timeoutMs: 1_000, attempts: 30 })).toEqual(["a", "b"]);
  });

  it("rejects data that is too large, and changes nothing", async () => {
    const name = unique("large");
    const list = open(options(), name);
    await list.append("a");

    const error = await list.append("x".repeat(tooLarge)).catch((reason) => reason);

    expect(error).toMatchObject({ name: "TooLargeError" });
    expect(error.message.length).toBeLessThan(1_000);
    await list.append("b");
    expect(await list.items()).toEqual(["a", "b"]);
  });

  it("reports an unreachable server for writes and reads", async () => {
    const list = open(options(0, { baseUrl: "http://127.0.0.1:1" }), unique("closed"));

    await expect(list.append("a")).rejects.toMatchObject({ code: "connection" });
    await expect(list.items()).rejects.toMatchObject({ code: "connection" });
  });

  it("reports an unavailable store", async () => {
    const proxy = await startProxy(servers[0], () => "refuse");
    const list = open(options(0, { baseUrl: proxy.url }), unique("unavailable"));

    await expect(list.append("a")).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(list.items()).rejects.toMatchObject({ code: "store_unavailable" });

    proxy.stop();
  });
});

const prefixes = { agentkit: "agentkit", ai: "ai", "express-session": "sess", "openai-agents": "openai-agents" };

it.each(Object.entries(prefixes))("%s does not recreate a conversation that has ended", async (adapter, prefix) => {
  const { open } = await import(`./support/adapters/${adapter}.mjs`);
  const name = unique("ended");
  const list = open(options(), name);
  await list.append("a");
  const thread = client(1).thread(await threadIdFor(name, prefix));
  await thread.destroy();

  // the express-session adapter does not report an error for an ended session
  const outcome = await list.append("late").catch((error) => error.code);

  expect(outcome).toBe(adapter === "express-session" ? undefined : "thread_destroyed");
  expect(await open(options(), name).items()).toEqual([]);
  expect(await thread.info()).toMatchObject({ exists: false });
});
