import { idempotencyKey } from "../thread/idempotency-key.js";
import type { CallOptions } from "../types/options.js";
import type { ServerRequest } from "./request.js";
import type { Transport } from "./send.js";

export interface KeyedOptions extends CallOptions {
  idempotencyKey?: string | undefined;
}

/** Sends a write with an idempotency key, so that the server performs it once even if the client repeats it. */
export function write<T = any>(
  transport: Transport,
  method: string,
  path: ServerRequest["path"],
  { idempotencyKey: key, ...options }: KeyedOptions = {},
  request: Partial<ServerRequest> = {},
): Promise<{ body: T; text: string; headers: Headers }> {
  const headers = { ...request.headers, "idempotency-key": key ?? idempotencyKey() };
  return transport.json<T>({ method, path, ...request, headers, options });
}
