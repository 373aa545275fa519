// Uses every tool and resource with the official TypeScript client. Usage: mcp_client.mjs API_KEY SERVER REPLICA

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

// `require` uses NODE_PATH, but `import` does not
const require = createRequire(import.meta.url);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require(
  "@modelcontextprotocol/sdk/client/streamableHttp.js",
);

const [apiKey, ...servers] = process.argv.slice(2);
const bearer = { authorization: `Bearer ${apiKey}` };
const requestCounts = new Map(servers.map((server) => [server, 0]));
let turn = 0;

// Sends requests to the two replicas in turn.
function alternateServers(url, init) {
  const server = servers[turn++ % servers.length];
  requestCounts.set(server, requestCounts.get(server) + 1);
  const { pathname, search } = new URL(url);
  return fetch(server + pathname + search, init);
}

async function connected(headers, path, use) {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(path, servers[0]), {
    requestInit: { headers },
    fetch: alternateServers,
  });
  await client.connect(transport);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const session = (name, use) => connected({ ...bearer, "x-session-id": name }, "/mcp", use);

async function post(path, body) {
  const headers = { ...bearer, "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(servers[0] + path, init);
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

async function call(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError ?? false, false, JSON.stringify(result));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

async function callWithError(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.content[0].text;
}

async function useEveryTool(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), [
    "kv_write",
    "kv_read",
    "kv_list",
    "kv_delete",
    "kv_increment",
    "tasks_write",
    "tasks_read",
    "tasks_update",
  ]);
  const hints = Object.fromEntries(tools.map((tool) => [tool.name, tool.annotations]));
  assert.equal(hints.kv_read.readOnlyHint, true);
  assert.equal(hints.kv_increment.idempotentHint, false);
  // the client validates the results of the calls below against these schemas
  assert.ok(tools.every((tool) => tool.title && tool.outputSchema));

  assert.deepEqual(await call(client, "kv_write", { key: "a/b", value: "é" }), { ok: true });
  assert.deepEqual(await call(client, "kv_read", { key: "a/b" }), { found: true, value: "é" });
  assert.deepEqual(await call(client, "kv_list"), { keys: ["a/b"] });
  for (const sum of [2, 4]) {
    const { value } = await call(client, "kv_increment", { key: "n", by: 2 });
    assert.equal(value, sum);
  }
  assert.deepEqual(await call(client, "kv_delete", { key: "n" }), { ok: true, deleted: true });
  const tasks = [{ content: "read", status: "in_progress" }];
  assert.deepEqual(await call(client, "tasks_write", { tasks }), { ok: true });
  assert.deepEqual(await call(client, "tasks_update", { index: 0, status: "completed" }), {
    ok: true,
  });
  assert.equal((await call(client, "tasks_read")).tasks[0].status, "completed");

  assert.equal(
    await callWithError(client, "kv_write", { key: "k".repeat(129), value: "" }),
    "kv.write key exceeds 128 bytes",
  );
  assert.match(await callWithError(client, "tasks_write", { tasks: [{ content: "x" }] }), /status/);
  await assert.rejects(client.callTool({ name: "no_such_tool" }), { code: -32602 });
}

async function readResources(client) {
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.equal(resourceTemplates[0].uriTemplate, "threadkeep://kv/{key}");
  for (let number = 0; number < 120; number++) {
    await call(client, "kv_write", { key: `many/${number}`, value: `${number}` });
  }

  const uris = [];
  let cursor;
  do {
    const page = await client.listResources({ cursor });
    uris.push(...page.resources.map((resource) => resource.uri));
    cursor = page.nextCursor;
  } while (cursor);
  assert.equal(new Set(uris).size, 122);

  const key = await client.readResource({ uri: "threadkeep://kv/many%2F7" });
  assert.equal(key.contents[0].text, "7");
  const tasks = await client.readResource({ uri: "threadkeep://tasks" });
  assert.equal(JSON.parse(tasks.contents[0].text).tasks.length, 1);
  const missing = client.readResource({ uri: "threadkeep://kv/none" });
  await assert.rejects(missing, { code: -32002 });
}

async function checkIsolation() {
  const [one, other] = [randomUUID(), randomUUID()];
  const thread = await post("/v1/threads", {});
  await session(one, (client) => call(client, "kv_write", { key: "k", value: one }));
  const keys = async (client) => (await call(client, "kv_list")).keys;
  assert.deepEqual(await session(other, keys), []);
  const signed = { "x-thread-id": thread.signed_id };
  assert.deepEqual(await connected(signed, "/mcp", keys), []);
  const { url } = await post("/v1/mcp-urls", { scope: `session:${one}` });
  const path = url.slice(url.indexOf("/mcp"));
  assert.deepEqual(await connected({}, path, keys), ["k"]);
}

async function checkRejectedCredentials() {
  for (const [headers, path] of [
    [{}, "/mcp"],
    [{ "x-session-id": "s" }, "/mcp"],
    [{ authorization: "Bearer wrong", "x-session-id": "s" }, "/mcp"],
    [{}, "/mcp?scope=session:s&sig=forged"],
  ]) {
    await assert.rejects(connected(headers, path, async () => {}), { code: 401 });
  }
}

await session(randomUUID(), async (client) => {
  assert.equal(client.getServerVersion().name, "threadkeep");
  assert.match(client.getInstructions(), /kv_write/);
  await useEveryTool(client);
  await readResources(client);
  console.log(`TypeScript: protocol ${client.transport.protocolVersion}`);
});
await checkIsolation();
await checkRejectedCredentials();
assert.ok([...requestCounts.values()].every((count) => count > 0));
