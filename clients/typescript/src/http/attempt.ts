import type { Sender } from "../identity/identity.js";
import type { Settings } from "../settings.js";
import { ConnectionError, ThreadkeepError } from "./errors.js";
import { prepare } from "./prepare.js";
import type { ServerRequest } from "./request.js";
import { orAbort, withDeadline } from "./wait.js";

export interface ServerResponse {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

export async function attempt(
  settings: Settings,
  request: ServerRequest,
  sender: Sender,
  onHeaders: (response: Headers) => void | Promise<void>,
): Promise<ServerResponse> {
  const [url, init] = await prepare(settings, request, sender);
  const { signal: outer, timeoutMs = settings.timeoutMs } = request.options ?? {};
  const ms = timeoutMs + (request.extraMs ?? 0);
  const receive = async (signal: AbortSignal) => {
    signal.throwIfAborted();
    const response = await settings.fetch(url, { ...init, signal });
    const { status, headers } = response;
    await onHeaders(headers);
    return { status, headers, bytes: new Uint8Array(await response.arrayBuffer()) };
  };
  return withDeadline(ms, outer, async (signal) => {
    try {
      return await orAbort(receive(signal), signal);
    } catch (error) {
      throw signal.aborted ? signal.reason : connectionError(error);
    }
  });
}

/** Wraps an error from `fetch` in a `ConnectionError`, because the original class depends on the platform. */
export function connectionError(cause: unknown): ThreadkeepError {
  return cause instanceof ThreadkeepError
    ? cause
    : new ConnectionError("connection", "connection: The server cannot be reached, or the connection broke.", { cause });
}
