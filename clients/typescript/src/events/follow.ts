import { connectionError } from "../http/attempt.js";
import { errorOf, isTransient } from "../http/errors.js";
import { linked, orAbort, sleep } from "../http/wait.js";
import { type Message, SseParser } from "./sse.js";

/** Time in ms without data after which a connection is considered dead. The server sends a comment every 15 s. */
export const SILENCE_MS = 45_000;
const DEFAULT_RETRY_MS = 2_000;
const MAX_RETRY_MS = 30_000;

/** A message from a stream. If `type` is empty, only `cursor` is meaningful. */
export interface Step {
  type: string;
  data: string;
  cursor: string;
}

export interface FollowOptions {
  signal: AbortSignal;
  lastEventId?: string | undefined;
  timeoutMs: number;
  onOpen?: (() => void) | undefined;
  onClose?: (() => void) | undefined;
  /** Called before each connection attempt and for each received chunk. */
  onActivity?: (() => void) | undefined;
}

export type Connect = (cursor: string | undefined, signal: AbortSignal) => Promise<Response>;

/** Follows a stream. After an interruption, reconnects without gaps or duplicates. */
export async function* follow(connect: Connect, o: FollowOptions): AsyncGenerator<Step, void> {
  let cursor = o.lastEventId;
  let retryMs = DEFAULT_RETRY_MS;
  for (let failures = 0; ; failures++) {
    let minMs = 0;
    let isOpen = false;
    o.onActivity?.();
    try {
      for await (const message of connection(connect, cursor, o)) {
        if (!message) {
          isOpen = true;
          failures = 0;
          o.onOpen?.();
          continue;
        }
        const { type, data, id, retry } = message;
        retryMs = retry ?? retryMs;
        cursor = id ?? cursor;
        if (cursor && (id || data)) yield { type: data && type, data, cursor };
      }
    } catch (error) {
      minMs = retryAfter(error, o.signal);
    } finally {
      if (isOpen) o.onClose?.();
    }
    await pause(Math.max(minMs, retryMs * 2 ** failures), o.signal);
  }
}

export async function persist(call: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let ms = DEFAULT_RETRY_MS; ; ms *= 2) {
    try {
      await call();
      return;
    } catch (error) {
      await pause(Math.max(retryAfter(error, signal), ms), signal);
    }
  }
}

function retryAfter(error: unknown, signal: AbortSignal): number {
  signal.throwIfAborted();
  if (!isTransient(error)) throw error;
  return error.retryAfterMs ?? 0;
}

/** Yields `undefined` once connected, then each message. Returns when the connection ends, and throws when it fails. */
async function* connection(
  connect: Connect,
  cursor: string | undefined,
  o: FollowOptions,
): AsyncGenerator<Message | undefined, void> {
  const controller = linked(o.signal);
  const { signal } = controller;
  const within = async <T>(ms: number, promise: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => controller.abort(connectionError(undefined)), ms);
    try {
      return await orAbort(promise, signal);
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    const response = await within(o.timeoutMs, connect(cursor, signal));
    if (!response.ok) throw errorOf(response.status, response.headers, await within(o.timeoutMs, response.text()));
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return; // a proxy's response
    yield;
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    for (;;) {
      const { done, value } = await within(SILENCE_MS, reader.read().catch(connectionLost));
      if (done) return;
      o.onActivity?.();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    controller.abort();
  }
}

const connectionLost = (error: unknown) => {
  throw connectionError(error);
};

/** Waits for about `ms`. Returns early when the browser comes back online. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const done = linked(signal);
  const onOnline = (wake: () => void) => globalThis.addEventListener?.("online", wake, { signal: done.signal });
  await sleep(Math.min(MAX_RETRY_MS, ms * (0.75 + Math.random() / 2)), signal, onOnline).finally(() => done.abort());
}
