import { errorOf, ThreadkeepError } from "../http/errors.js";
import { orAbort, sleep } from "../http/wait.js";
import { type Message, SseParser } from "./sse.js";

const SILENCE_MS = 45_000;
const DEFAULT_RETRY_MS = 2_000;
const MAX_RETRY_MS = 30_000;

/** A message of a stream, or, without a type, only a new position. */
export interface Step {
  type: string;
  data: string;
  cursor: string;
}

export interface Following {
  signal: AbortSignal;
  lastEventId?: string | undefined;
  /** The time for the headers of a response. */
  timeoutMs: number;
  onOpen?: (() => void) | undefined;
  onClose?: (() => void) | undefined;
}

/** Opens the stream after a cursor. */
export type Connect = (cursor: string | undefined, signal: AbortSignal) => Promise<Response>;

/** Follows a stream across interruptions, without a gap and without a repetition. */
export async function* follow(connect: Connect, o: Following): AsyncGenerator<Step, void> {
  let cursor = o.lastEventId;
  let retryMs = DEFAULT_RETRY_MS;
  for (let failures = 0; ; failures++) {
    let leastMs = 0;
    let isOpen = false;
    try {
      for await (const message of connection(connect, cursor, o)) {
        if (message === OPEN) {
          isOpen = true;
          failures = 0;
          o.onOpen?.();
          continue;
        }
        retryMs = message.retry ?? retryMs;
        cursor = message.id ?? cursor;
        if (cursor !== undefined && (message.id !== undefined || message.data)) {
          yield { type: message.data && message.type, data: message.data, cursor };
        }
      }
    } catch (error) {
      o.signal.throwIfAborted();
      if (!(error instanceof ThreadkeepError) || !isBroken(error)) throw error;
      leastMs = error.retryAfterMs ?? 0;
    } finally {
      if (isOpen) o.onClose?.();
    }
    const ms = Math.max(leastMs, retryMs * 2 ** failures) * (0.75 + Math.random() / 2);
    await online(Math.min(MAX_RETRY_MS, ms), o.signal);
  }
}

const OPEN: Message = { type: "", data: "" };

/** The messages of one connection, after `OPEN`. Ends or fails when the connection does. */
async function* connection(connect: Connect, cursor: string | undefined, o: Following): AsyncGenerator<Message, void> {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = () => controller.abort(o.signal.reason);
  if (o.signal.aborted) stop();
  o.signal.addEventListener("abort", stop);
  const within = async <T>(ms: number, promise: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => controller.abort(broken()), ms);
    try {
      return await orAbort(promise, signal);
    } catch (error) {
      // platforms report a lost connection by errors of different classes
      throw error instanceof ThreadkeepError || signal.aborted ? error : broken();
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    const response = await within(o.timeoutMs, connect(cursor, signal));
    if (!response.ok) throw errorOf(response.status, response.headers, await within(o.timeoutMs, response.text()));
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body) throw broken();
    yield OPEN;
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await within(SILENCE_MS, reader.read());
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    o.signal.removeEventListener("abort", stop);
    controller.abort();
  }
}

const broken = () => new ThreadkeepError("connection", "connection: The stream broke.");

const isBroken = ({ code, status }: ThreadkeepError): boolean =>
  status === undefined ? code !== "cookie_lost" : status >= 500 || status === 408 || status === 429;

/** Waits, but not longer than until the browser is online again. */
async function online(ms: number, signal: AbortSignal): Promise<void> {
  const target = globalThis as Partial<EventTarget>;
  let wake = () => {};
  const event = new Promise<void>((resolve) => (wake = resolve));
  target.addEventListener?.("online", wake);
  const done = new AbortController();
  const stop = () => done.abort(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    signal.throwIfAborted();
    await Promise.race([sleep(ms, done.signal), event]);
  } finally {
    signal.removeEventListener("abort", stop);
    target.removeEventListener?.("online", wake);
    done.abort();
  }
}
