// An app for Agentuity's runtime. Executes the thread and key-value calls that a request lists. Version 2 of the runtime
// serves this file directly. Version 1 serves it through start_v1.ts.

import { createApp, createRouter, hasWaitUntilPending } from "@agentuity/runtime";

type Step = [string, ...any[]];

const router = createRouter();
const waiting = new Map<string, () => void>();

// [["push", "messages", "hello", 50], ["get", "name"], ..] -> the result of each call
router.post("/thread", async (c) => {
  const results = [];
  for (const [method, ...args] of (await c.req.json()) as Step[]) {
    results.push((await callThread(c.var.thread, method, args)) ?? null);
  }
  return c.json(results);
});

function callThread(thread: any, method: string, args: any[]) {
  switch (method) {
    case "getMetadata":
    case "setMetadata":
    case "empty":
    case "destroy":
      return thread[method](...args);
    case "hold": // waits for a POST to /release with this name
      return new Promise<void>((resolve) => waiting.set(args[0], resolve));
    default:
      return thread.state[method](...args);
  }
}

router.post("/release/:name", (c) => {
  waiting.get(c.req.param("name"))?.();
  return c.json(waiting.delete(c.req.param("name")));
});

// returns true while the save of an answered request is pending
router.get("/pending", (c) => c.json(hasWaitUntilPending()));

// ["get", "namespace", "key"] -> {"result": ..} or {"error": ..}; bytes are {"bytes": base64}
router.post("/kv", async (c) => {
  const [method, ...args] = decode(await c.req.json()) as Step;
  try {
    return c.json({ result: encode(await (c.var.kv as any)[method](...args)) ?? null });
  } catch (error: any) {
    return c.json({ error: `${error.statusCode}: ${error.message}` });
  }
});

function decode(value: any): any {
  if (Array.isArray(value)) return value.map(decode);
  return value?.bytes !== undefined ? Uint8Array.from(Buffer.from(value.bytes, "base64")) : value;
}

function encode(value: any): any {
  if (value instanceof ArrayBuffer) return { bytes: Buffer.from(value).toString("base64") };
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, encode(part)]));
}

await createApp({ router: { path: "/api", router }, analytics: false });

const server = (globalThis as any).__AGENTUITY_SERVER__;
if (server) console.log(`listening on ${server.port}`);
