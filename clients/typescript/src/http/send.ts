import type { Identity } from "../identity/identity.js";
import type { Settings } from "../settings.js";
import type { JsonFormat } from "../types/json.js";
import { attempt, type ServerResponse } from "./attempt.js";
import { ConnectionError, errorOf, ThreadkeepError, TimeoutError } from "./errors.js";
import type { ServerRequest } from "./request.js";
import { randomPause, sleep } from "./wait.js";

const MAX_RETRY_AFTER_MS = 10_000;
const MAX_PAUSE_MS = 2_000;
const decoder = new TextDecoder();

export interface Transport {
  readonly settings: Settings;
  readonly identity: Identity;
  send(request: ServerRequest): Promise<ServerResponse>;
  /** Sends a request, and parses the response with the platform's own `JSON`. */
  json<T>(request: ServerRequest): Promise<{ body: T; text: string; headers: Headers }>;
  /** Sends a request, and parses the response with the application's `JsonFormat`. */
  value(request: ServerRequest): Promise<{ body: any; text: string; headers: Headers }>;
}

export function transportOf(settings: Settings, identity: Identity): Transport {
  const sendOnce = async (request: ServerRequest): Promise<ServerResponse | ThreadkeepError> => {
    const sender = await identity.sender();
    const { responseThread } = request;
    const onHeaders = (headers: Headers) =>
      responseThread === "other" ? undefined : identity.handleResponse(sender, headers, responseThread === "new");
    try {
      const response = await attempt(settings, request, sender, onHeaders);
      const { status, headers, bytes } = response;
      return status < 300 ? response : errorOf(status, headers, decoder.decode(bytes));
    } catch (error) {
      if (error instanceof ThreadkeepError) return error;
      throw error;
    }
  };
  const send = async (request: ServerRequest): Promise<ServerResponse> => {
    const signal = request.options?.signal;
    signal?.throwIfAborted();
    const leave = await identity.enter(signal, request.query?.["ttl_seconds"] as number | undefined);
    try {
      for (let tries = 1; ; tries++) {
        const result = await sendOnce(request);
        if (!(result instanceof ThreadkeepError)) return result;
        if (tries >= settings.attempts || !isRetryable(result, request.once)) throw result;
        await sleep(pause(result, tries), signal);
      }
    } finally {
      leave();
    }
  };
  const parse = async (request: ServerRequest, format: JsonFormat) => {
    const { bytes, headers, status } = await send(request);
    const text = decoder.decode(bytes);
    return { body: parsed(text, status, format) as any, text, headers };
  };
  return {
    settings,
    identity,
    send,
    json: (request) => parse(request, JSON),
    value: (request) => parse(request, settings.json),
  };
}

function parsed(text: string, status: number, format: JsonFormat): unknown {
  try {
    return text && format.parse(text);
  } catch {
    // omits the cause, because its message would reveal part of the response
    throw new ThreadkeepError("unknown", "unknown: The response is not JSON.", {
      status,
    });
  }
}

/** Returns whether a retry may help. With `once`, requires that the server certainly did not perform the request. */
function isRetryable(error: ThreadkeepError, once = false): boolean {
  const { status = 0 } = error;
  if (once) return status === 429 || (status === 503 && error.code !== "unknown");
  return (
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    [408, 429, 502, 503, 504].includes(status)
  );
}

function pause({ retryAfterMs }: ThreadkeepError, tries: number): number {
  return retryAfterMs === undefined
    ? randomPause(50, tries, MAX_PAUSE_MS)
    : Math.min(MAX_RETRY_AFTER_MS, retryAfterMs);
}
