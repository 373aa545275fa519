import type { Sender } from "../identity/identity.js";
import type { Settings } from "../settings.js";
import { ConnectionError, ThreadkeepError, TimeoutError } from "./errors.js";
import { prepare } from "./prepare.js";
import type { ServerRequest } from "./request.js";
import { orAbort } from "./wait.js";

/** A response with its body. */
export interface Answer {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

/** Sends a request once, and reads the whole response. */
export async function attempt(
  settings: Settings,
  request: ServerRequest,
  sender: Sender,
  learn: (response: Headers) => void | Promise<void>,
): Promise<Answer> {
  const { signal: outer, timeoutMs = settings.timeoutMs } = request.options ?? {};
  const [url, init] = await prepare(settings, request, sender);
  const controller = new AbortController();
  const { signal } = controller;
  const stop = () => controller.abort(outer!.reason);
  if (outer?.aborted) stop();
  outer?.addEventListener("abort", stop);
  const ms = timeoutMs + (request.extraMs ?? 0);
  const late = () => controller.abort(new TimeoutError("timeout", `timeout: No response arrived within ${ms} ms.`));
  const timer = setTimeout(late, ms);
  const receive = async () => {
    signal.throwIfAborted();
    const response = await settings.fetch(url, { ...init, signal });
    await learn(response.headers);
    return {
      status: response.status,
      headers: response.headers,
      bytes: new Uint8Array(await response.arrayBuffer()),
    };
  };
  try {
    return await orAbort(receive(), signal);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw connectionError(error);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", stop);
  }
}

/** A failure of `fetch` as an error of this package. */
export function connectionError(error: unknown): ThreadkeepError {
  if (error instanceof ThreadkeepError) return error;
  return new ConnectionError("connection", "connection: The server cannot be reached, or the connection broke.", {
    cause: error,
  });
}
