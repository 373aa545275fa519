// An app for Agentuity's runtime. Executes the thread and key-value calls that a request lists. Version 2 of the runtime
// serves this file directly. Version 1 serves it through start_v1.ts.

import { createApp, createRouter, hasWaitUntilPending } from "@agentuity/runtime";

type Step = [string, ...any[]];

const router = createRouter();
const held = new Map<string, () => void>();

// [["push", "messages", "hello", 50], ["get", "name"], ..] -> the result of each call
router.post("/thread", async (c) => {
  const answers = [];
  for (const [what, ...args] of (await c.req.json()) as Step[]) {
    answers.push((await act(c.var.thread, what, args)) ?? null);
  }
  return c.json(answers);
});

function act(thread: any, what: string, args: any[]) {
  switch (what) {
    case "getMetadata":
    case "setMetadata":
    case "empty":
    case "destroy":
      return thread[what](...args);
    case "hold": // until a POST to /release with this name
      return new Promise<void>((resolve) => held.set(args[0], resolve));
    default:
      return thread.state[what](...args);
  }
}

router.post("/release/:name", (c) => {
  held.get(c.req.param("name"))?.();
  return c.json(held.delete(c.req.param("name")));
});

// answers true while the save of an answered request is pending
router.get("/pending", (c) => c.json(hasWaitUntilPending()));

// ["get", "namespace", "key"] -> {"result": ..} or {"error": ..}; bytes are {"bytes": base64}
router.post("/kv", async (c) => {
  const [what, ...args] = received(await c.req.json()) as Step;
  try {
    return c.json({ result: sent(await (c.var.kv as any)[what](...args)) ?? null });
  } catch (error: any) {
    return c.json({ error: `${error.statusCode}: ${error.message}` });
  }
});

function received(value: any): any {
  if (Array.isArray(value)) return value.map(received);
  return value?.bytes !== undefined ? Uint8Array.from(Buffer.from(value.bytes, "base64")) : value;
}

function sent(value: any): any {
  if (value instanceof ArrayBuffer) return { bytes: Buffer.from(value).toString("base64") };
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, sent(part)]));
}

await createApp({ router: { path: "/api", router }, analytics: false });

const server = (globalThis as any).__AGENTUITY_SERVER__;
if (server) console.log(`listening on ${server.port}`);
