import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createClient } from "threadkeep";

const update = (version: number, keys: string[]) =>
  JSON.stringify({ time: "2026-01-01T00:00:00Z", data: { thread_id: "thrd_a", version, keys } });

const LINES = [
  "\uFEFF: a comment",
  "retry: 10",
  "id: c0",
  "",
  "event: thread.updated",
  "id: c1",
  `data: ${update(1, ["ü", "😀"])}`,
  "",
  "event: something.new",
  "id: c2",
  "data: {}",
  "",
  "event:history.appended",
  "id:c3",
  `data:{"time":"t","data":{"thread_id":"thrd_a","version":1,`,
  `data:"first_seq":1,"last_seq":2}}`,
  "unknown: field",
  "",
  "event: reset",
  "id: c4",
  "data: {}",
  "",
  "event: thread.updated",
  "id: c5",
  "data: cut off before its blank line",
];

function clientOf(pieces: Uint8Array[], requests: (string | null)[] = []) {
  const fakeFetch = async (url: unknown, init?: RequestInit) => {
    const headers = { "x-thread-id": "thrd_a;sig", "content-type": "text/event-stream" };
    if (!String(url).endsWith("/events")) return new Response("{}", { headers });
    requests.push(new Headers(init?.headers).get("last-event-id"));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    return new Response(body, { headers });
  };
  return createClient({ baseUrl: "http://fake", fetch: fakeFetch as typeof fetch });
}

async function read(pieces: Uint8Array[]): Promise<{ types: string[]; cursors: string[]; last: string | null }> {
  const requests: (string | null)[] = [];
  const seen: { type: string; cursor: string }[] = [];
  for await (const event of clientOf(pieces, requests).current().events()) {
    if (requests.length > 1) break;
    seen.push(event);
    if (event.type === "thread.updated") assert.deepEqual(event.keys, ["ü", "😀"]);
  }
  return { types: seen.map(({ type }) => type), cursors: seen.map(({ cursor }) => cursor), last: requests[1]! };
}

describe("streams", () => {
  for (const [name, end] of Object.entries({ LF: "\n", CRLF: "\r\n", CR: "\r" })) {
    test(`lines may end with ${name} and be split anywhere`, async () => {
      const bytes = new TextEncoder().encode(LINES.join(end));
      const expected = {
        types: ["thread.updated", "history.appended", "reset"],
        cursors: ["c1", "c3", "c4"],
        last: "c4", // the last complete event
      };
      const splits = [1, 2, 3, 7, bytes.length];
      for (const size of splits) {
        const pieces = [];
        for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
        assert.deepEqual(await read(pieces), expected, `pieces of ${size}`);
      }
    });
  }

  test("a stream of another thread that fails to close does no harm", async () => {
    const failing = async (url: unknown) => {
      const isOther = String(url).endsWith("/current/events");
      const headers = { "x-thread-id": isOther ? "thrd_b;sig" : "thrd_a;sig", "content-type": "text/event-stream" };
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode("id: c1\nevent: reset\ndata: {}\n\n")),
        cancel: () => Promise.reject(new Error("broken")),
      });
      return new Response(String(url).endsWith("/events") ? body : "{}", { headers });
    };
    const stream = createClient({ baseUrl: "http://fake", fetch: failing as typeof fetch }).current().events();
    assert.equal((await stream.next()).value?.cursor, "c1");
    await new Promise((resolve) => setImmediate(resolve));
    await stream.return!();
  });

  test("a stream that is silent for 45 s is opened again, and a slow reader is not silence", async (t) => {
    let opened = 0;
    const silent = async (url: unknown, init?: RequestInit) => {
      const headers = { "x-thread-id": "thrd_a;sig", "content-type": "text/event-stream" };
      if (!String(url).endsWith("/events")) return new Response("{}", { headers });
      opened++;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(`id: c${opened}\nevent: reset\ndata: {}\n\n`));
          init?.signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
        },
      });
      return new Response(body, { headers });
    };
    const client = createClient({ baseUrl: "http://fake", fetch: silent as typeof fetch });
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const stream = client.current().events();
    const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
    await stream.next();
    for (let round = 0; round < 20; round++) {
      t.mock.timers.tick(10_000);
      await settle();
    }
    assert.equal(opened, 1); // reconnects only when the next event is requested
    const next = stream.next();
    await settle();
    t.mock.timers.tick(44_000);
    await settle();
    assert.equal(opened, 1);
    for (let round = 0; round < 10; round++) {
      t.mock.timers.tick(1_000);
      await settle();
    }
    assert.equal(opened, 2);
    assert.equal((await next).value?.cursor, "c2");
    await stream.return!();
  });
});
