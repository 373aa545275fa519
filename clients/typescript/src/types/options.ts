import type { Client } from "./client.js";
import type { JsonFormat } from "./json.js";

export interface ClientOptions {
  /** URL of the server. Default: the page's origin in a browser, and the environment variable THREADKEEP_URL elsewhere. */
  baseUrl?: string | URL | undefined;
  /**
   * API key of a back end, a function to call for each request, or an empty string for none. Default: the environment
   * variable THREADKEEP_API_KEY, unless you pass `token`, `signedId`, or a header `authorization`, `cookie` or
   * `x-thread-id`.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** A user's login token, such as a JWT, or a function to call for each request. Not allowed with `apiKey`. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Signed ID of the first thread of `current()`. */
  signedId?: string | undefined;
  /** How the server identifies the thread of `current()`. Default: "cookie" in a browser, "header" elsewhere. */
  identity?: "cookie" | "header" | undefined;
  /** Name of the server's cookie. Default: "atid". */
  cookieName?: string | undefined;
  /**
   * Headers of every request, or a function to call for each request. `forRequest` omits `authorization`, `cookie` and
   * `x-thread-id`, because a user's request must not carry the back end's credentials.
   */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined;
  /** Default: "same-origin". Use "include" to send cookies to a different origin. */
  credentials?: RequestCredentials | undefined;
  /** Default: the platform's `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Time limit for each attempt. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** Maximum number of attempts, including the first. Default: 4. */
  attempts?: number | undefined;
  /** Default: the platform's `JSON`. */
  json?: JsonFormat | undefined;
}

/** An existing client, or options for a new client. */
export type ClientSource = { client: Client } | ClientOptions;

export interface CallOptions {
  /** Aborts the call immediately. The server may still perform the write. */
  signal?: AbortSignal | undefined;
  /** Time limit for each attempt. */
  timeoutMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Default: a random key per call. All attempts of a call send the same key. */
  idempotencyKey?: string | undefined;
  /** Required ETag or version of the thread. "*" requires only that the thread exists. */
  ifMatch?: string | number | undefined;
  /** Required life of the thread: the part of the ETag after `-`. Each reuse of an ended ID begins a new life. */
  life?: string | undefined;
  /** TTL of the thread if this write creates it. */
  ttlSeconds?: number | undefined;
}
