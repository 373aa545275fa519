import type { Identity } from "../identity/identity.js";
import type { Settings } from "../settings.js";
import { type Answer, attempt } from "./attempt.js";
import { ConnectionError, errorOf, ThreadkeepError, TimeoutError } from "./errors.js";
import type { ServerRequest } from "./request.js";
import { sleep } from "./wait.js";

const MAX_RETRY_AFTER_MS = 10_000;
const MAX_PAUSE_MS = 2_000;
const decoder = new TextDecoder();

/** Sends requests as one identity, again where that may help. */
export class Sending {
  constructor(
    readonly settings: Settings,
    readonly identity: Identity,
  ) {}

  /** Returns a response that reports success. */
  async send(request: ServerRequest): Promise<Answer> {
    const { settings, identity } = this;
    const signal = request.options?.signal;
    signal?.throwIfAborted();
    const leave = await identity.enter(signal);
    try {
      for (let tries = 1; ; tries++) {
        const error = await this.#once(request);
        if (!(error instanceof ThreadkeepError)) return error;
        if (tries >= settings.attempts || !helps(error, request.once)) throw error;
        await sleep(pause(error, tries), signal);
      }
    } finally {
      leave();
    }
  }

  /** As `send`, with the body as JSON of the client itself. */
  async json<T>(request: ServerRequest): Promise<{ body: T; text: string; headers: Headers }> {
    const { bytes, headers, status } = await this.send(request);
    const text = decoder.decode(bytes);
    return { body: parsed(text, status, JSON.parse) as T, text, headers };
  }

  /** As `send`, with the body as JSON of the application. */
  async value(request: ServerRequest): Promise<{ body: any; headers: Headers }> {
    const { bytes, headers, status } = await this.send(request);
    return { body: parsed(decoder.decode(bytes), status, this.settings.json.parse), headers };
  }

  async #once(request: ServerRequest): Promise<Answer | ThreadkeepError> {
    const { settings, identity } = this;
    const sender = await identity.sender();
    try {
      const { names } = request;
      const learn = (headers: Headers) =>
        names === "other" ? undefined : identity.learn(sender, headers, names === "fresh");
      const answer = await attempt(settings, request, sender, learn);
      if (answer.status < 300) return answer;
      return errorOf(answer.status, answer.headers, decoder.decode(answer.bytes));
    } catch (error) {
      if (error instanceof ThreadkeepError) return error;
      throw error;
    }
  }
}

function parsed(text: string, status: number, parse: (text: string) => unknown): unknown {
  try {
    return text && parse(text);
  } catch {
    // the cause would show a part of the text
    throw new ThreadkeepError("unknown", "unknown: The response is not JSON. Does `baseUrl` lead to threadkeep?", {
      status,
    });
  }
}

/** Whether sending the request again may help. `once`: unless it may have been performed. */
function helps(error: ThreadkeepError, once = false): boolean {
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
    ? Math.random() * Math.min(MAX_PAUSE_MS, 50 * 2 ** tries)
    : Math.min(MAX_RETRY_AFTER_MS, retryAfterMs);
}
