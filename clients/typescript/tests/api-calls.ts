import type { Client, Thread, Turn } from "threadkeep";
import type { Admin } from "threadkeep/admin";

type Example<T> = { [method: string]: (subject: T) => unknown };

const drain = async (items: AsyncIterable<unknown>) => {
  for await (const _ of items) break;
};

export const threadCalls: Example<Thread> = {
  "info()": (thread) => thread.info(),
  "read()": (thread) => thread.read(),
  "get(key)": (thread) => thread.get("a"),
  "has(key)": (thread) => thread.has("a"),
  "keys()": (thread) => thread.keys(),
  "set(key, value)": (thread) => thread.set("a", 1),
  "delete(key)": (thread) => thread.delete("a"),
  "push(key, value)": (thread) => thread.push("a", 1),
  "increment(key)": (thread) => thread.increment("a"),
  "merge(operations)": (thread) => thread.merge([{ op: "clear" }]),
  "patch(mergePatch)": (thread) => thread.patch({}),
  "replace(state)": (thread) => thread.replace({}),
  "clear()": (thread) => thread.clear(),
  "update(keys, change)": (thread) => thread.update("a", () => [{ op: "clear" }]),
  "configure(change)": (thread) => thread.configure({}),
  "destroy()": (thread) => thread.destroy(),
  "turn()": async (thread) => {
    const turn = await thread.turn({ ttlSeconds: 0.03 });
    await new Promise((resolve) => setTimeout(resolve, 50)); // long enough for a renewal
    await turn.release();
  },
  "turnState()": (thread) => thread.turnState(),
  "fork()": (thread) => thread.fork(),
  "rotate()": (thread) => thread.rotate(),
  "checkpoints.create()": (thread) => thread.checkpoints.create(),
  "checkpoints.list()": (thread) => thread.checkpoints.list(),
  "checkpoints.get(n)": (thread) => thread.checkpoints.get(1),
  "checkpoints.restore(n)": (thread) => thread.checkpoints.restore(1),
  "checkpoints.delete(n)": (thread) => thread.checkpoints.delete(1),
  "history.append(item)": (thread) => thread.history.append({ id: "a", value: 1 }),
  "history.appendMany(items)": (thread) => thread.history.appendMany([{ id: "a", value: 1 }]),
  "history.page()": (thread) => thread.history.page(),
  "history.items()": (thread) => drain(thread.history.items()),
  "history.latest(count)": (thread) => thread.history.latest(1),
  "history.compact(compaction)": (thread) => thread.history.compact({ through: 1, count: 1, items: [{ value: 1 }] }),
  "history.segments()": (thread) => thread.history.segments(),
  "history.segment(n)": (thread) => thread.history.segment(1),
  "history.take()": (thread) => thread.history.take(),
  "history.delete(id)": (thread) => thread.history.delete("a"),
  "history.clear()": (thread) => thread.history.clear(),
  "effects.get(id)": (thread) => thread.effects.get("a"),
  "effects.list()": (thread) => drain(thread.effects.list()),
  "events()": (thread) => drain(thread.events()),
};

export const turnCalls: Example<Turn> = {
  "effect(id, tool, args, run)": (turn) => turn.effect("a", "tool", {}, () => 1),
};

export const clientCalls: Example<Client> = {
  "threads.create()": (client) => client.threads.create(),
  "threads.list()": (client) => client.threads.list(),
  "events()": (client) => drain(client.events()),
  "scope(name).get(key)": (client) => client.scope("session:a").get("a"),
  "scope(name).getMany(keys)": (client) => client.scope("session:a").getMany(["a"]),
  "scope(name).set(key, value)": (client) => client.scope("session:a").set("a", "b"),
  "scope(name).delete(key)": (client) => client.scope("session:a").delete("a"),
  "scope(name).keys()": (client) => client.scope("session:a").keys(),
  "scope(name).increment(key)": (client) => client.scope("session:a").increment("a"),
  "scope(name).end()": (client) => client.scope("session:a").end(),
  "kv(namespace).get(key)": (client) => client.kv("n").get("a"),
  "kv(namespace).put(key, body)": (client) => client.kv("n").put("a", "b"),
  "kv(namespace).delete(key)": (client) => client.kv("n").delete("a"),
  "kv(namespace).page()": (client) => client.kv("n").page(),
  "kv(namespace).keys()": (client) => drain(client.kv("n").keys()),
  "kv(namespace).clear()": (client) => client.kv("n").clear(),
};

export const adminCalls: Example<Admin> = {
  "tools.list()": (admin) => admin.tools.list(),
  "tools.call(name)": (admin) => admin.tools.call("kv_read"),
  "tools.run(calls)": (admin) => admin.tools.run({}),
  "tools.mcpUrl(scope)": (admin) => admin.tools.mcpUrl("session:a"),
  "tasks(scope).get()": (admin) => admin.tasks("session:a").get(),
  "tasks(scope).set(tasks)": (admin) => admin.tasks("session:a").set([]),
  "tasks(scope).update(change)": (admin) => admin.tasks("session:a").update({ index: 0 }),
  "scopes.describe(scope)": (admin) => admin.scopes.describe("session:a"),
  "scopes.clear(scope)": (admin) => admin.scopes.clear("session:a"),
  "archives.list()": (admin) => admin.archives.list(),
  "archives.get(id)": (admin) => admin.archives.get("a"),
  "archives.history(id)": (admin) => admin.archives.history("a"),
  "archives.restore(id)": (admin) => admin.archives.restore("a"),
  "webhooks.list()": (admin) => admin.webhooks.list(),
  "webhooks.create(webhook)": (admin) => admin.webhooks.create({ url: "https://example.com", events: [] }),
  "webhooks.get(id)": (admin) => admin.webhooks.get("a"),
  "webhooks.update(id, change)": (admin) => admin.webhooks.update("a", {}),
  "webhooks.delete(id)": (admin) => admin.webhooks.delete("a"),
  "webhooks.failed(id)": (admin) => admin.webhooks.failed("a"),
  "webhooks.pending(id)": (admin) => admin.webhooks.pending("a"),
  "webhooks.replay(id)": (admin) => admin.webhooks.replay("a"),
  "owners.get(owner)": (admin) => admin.owners.get("a"),
  "owners.erase(owner)": (admin) => admin.owners.erase("a"),
  "owners.assign(id, owner)": (admin) => admin.owners.assign("a", null),
  "kv(namespace).entries()": (admin) => admin.kv("n").entries(),
  "kv(namespace).getMany(keys)": (admin) => admin.kv("n").getMany(["a"]),
  "kv(namespace).putMany(entries)": (admin) => admin.kv("n").putMany([]),
  "kv(namespace).configure(settings)": (admin) => admin.kv("n").configure({}),
  "namespaces()": (admin) => admin.namespaces(),
  "export(id)": (admin) => admin.export("a"),
  "exportAll()": (admin) => drain(admin.exportAll()),
  "importDocument(document)": (admin) => admin.importDocument("{}"),
  "stats()": (admin) => admin.stats(),
  "settings()": (admin) => admin.settings(),
  "apiKey()": (admin) => admin.apiKey(),
};

/** Calls for which the client has no method: probes, metrics, and an export that the client requests by thread ID. */
export const WITHOUT_METHOD = ["GET /healthz", "GET /readyz", "GET /metrics", "GET /v1/threads/current/export"];
