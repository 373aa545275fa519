import { readFileSync } from "node:fs";
import { createClient, type Thread, type Turn } from "threadkeep";
import { createAdmin } from "threadkeep/admin";
import { adminCalls, clientCalls, threadCalls, turnCalls } from "./api-calls.js";

/** Returns the operations in `openapi.json` as `METHOD /path`. Omits operations of other protocols. */
export function operations(openapi: string): string[] {
  const { paths } = JSON.parse(readFileSync(openapi, "utf8")) as { paths: { [path: string]: { [method: string]: object } } };
  const methods = ["get", "put", "post", "patch", "delete"];
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).filter((method) => methods.includes(method) && !("externalDocs" in item[method]!)).map((method) => `${method.toUpperCase()} ${path}`),
  );
}

async function requestsOf(call: (fetch: typeof globalThis.fetch) => unknown): Promise<Set<string>> {
  const requests = new Set<string>();
  await call((input, init) => {
    requests.add(`${init!.method} ${new URL(String(input)).pathname}`);
    return fakeFetch(input, init);
  });
  return requests;
}

const fakeFetch: typeof fetch = async (input, init) => {
  const { pathname } = new URL(String(input));
  const body = {
    id: "thrd_x", signed_id: "thrd_x;y", token: "t", checkpoint: 1, complete: true, version: 1,
    items: [], keys: [], results: [], threads: [], entries: [], unread: [], tools: [], tasks: [], archives: [],
    webhooks: [], failed: [], pending: [], namespaces: [], segments: [], checkpoints: [], values: {}, next_cursor: null,
    effects: [], state: "granted", attempt: 1, fence: "f",
  };
  const text = pathname.endsWith("/events") ? "id: c\nevent: reset\ndata: {}\n\n" : JSON.stringify(body);
  const headers = { "x-thread-id": "thrd_x;y", etag: '"1-0123456789abcdef"', "content-type": pathname.endsWith("/events") ? "text/event-stream" : "application/json" };
  return new Response(init!.method === "HEAD" ? null : text, { headers });
};

/** Takes a turn, and passes only the requests of `call` to `fetch`. */
async function inTurn(threadOf: (fetch: typeof globalThis.fetch) => Thread, fetch: typeof globalThis.fetch, call: (turn: Turn) => unknown) {
  let used = fakeFetch;
  const turn = await threadOf((input, init) => used(input, init)).turn();
  try {
    used = fetch;
    await call(turn);
  } finally {
    used = fakeFetch;
    await turn.release();
  }
}

export async function methodsByCall(openapi: string): Promise<Map<string, string[]>> {
  const documented = operations(openapi);
  const table = new Map<string, string[]>();
  const record = async (method: string, call: (fetch: typeof globalThis.fetch) => unknown) => {
    for (const request of await requestsOf(call)) {
      const operation = match(request, documented);
      const methods = table.get(operation) ?? [];
      if (!methods.includes(method)) table.set(operation, [...methods, method]);
    }
  };
  const baseUrl = "http://fake";
  const apiKey = "key";
  const current = (fetch: typeof globalThis.fetch) => createClient({ baseUrl, fetch, signedId: "thrd_x;y" }).current();
  const byId = (fetch: typeof globalThis.fetch) => createClient({ baseUrl, fetch, apiKey }).thread("thrd_x");
  for (const threadOf of [current, byId]) {
    for (const [name, call] of Object.entries(threadCalls)) await record(`thread.${name}`, (fetch) => call(threadOf(fetch)));
    for (const [name, call] of Object.entries(turnCalls)) await record(`turn.${name}`, (fetch) => inTurn(threadOf, fetch, call));
  }
  for (const [name, call] of Object.entries(clientCalls)) {
    await record(`client.${name}`, (fetch) => call(createClient({ baseUrl, fetch, apiKey })));
  }
  for (const [name, call] of Object.entries(adminCalls)) {
    await record(`admin.${name}`, (fetch) => call(createAdmin({ baseUrl, fetch, apiKey })));
  }
  return table;
}

/** Returns the operation that matches a request, or else `request` itself. Treats HEAD as GET. */
function match(request: string, documented: string[]): string {
  const actual = request.replace(/^HEAD/, "GET").split("/");
  const fits = (operation: string) => {
    const parts = operation.split("/");
    return parts.length === actual.length && parts.every((part, index) => part === actual[index] || /^\{.*\}$/.test(part));
  };
  const fitting = documented.filter(fits).sort((a, b) => a.split("{").length - b.split("{").length);
  return fitting[0] ?? actual.join("/");
}

/** Renders the table as Markdown. A call with `current` and the same call with an ID share a row. */
export function markdown(table: Map<string, string[]>): string {
  const rows = new Map<string, string[]>();
  for (const [operation, methods] of table) {
    const row = operation.replace(/\/v1\/threads\/(current|thrd_x|\{id\})/, "/v1/threads/current");
    rows.set(row, [...new Set([...(rows.get(row) ?? []), ...methods])]);
  }
  const lines = [...rows].sort(([a], [b]) => key(a).localeCompare(key(b))).map(
    ([operation, methods]) => `| \`${operation}\` | ${methods.map((method) => `\`${method}\``).join(", ")} |`,
  );
  return `# Calls and methods

Each call of the API, with the methods that make it. A call for \`/v1/threads/current\` exists for \`/v1/threads/{id}\`, too:
\`client.current()\` makes the one, \`client.thread(id)\` the other.

| call | method |
|---|---|
${lines.join("\n")}
`;
}

const key = (operation: string) => operation.split(" ").reverse().join(" ");
