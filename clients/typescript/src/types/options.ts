import type { Client } from "./client.js";
import type { JsonFormat } from "./json.js";

export interface ClientOptions {
  /** URL of the server. Default: the page's origin in a browser, elsewhere the variable THREADKEEP_URL. */
  baseUrl?: string | URL | undefined;
  /**
   * API key of a back end; empty for none. A function is called for each request. Default: the variable THREADKEEP_API_KEY,
   * unless the options have another credential: `token`, `signedId`, or a header `authorization`, `cookie` or `x-thread-id`.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Login of a user, such as a JWT. Excludes `apiKey`. A function is called for each request. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** The thread that `current()` starts with. */
  signedId?: string | undefined;
  /** How the server identifies the caller of `current()`. Default: "cookie" in a browser, "header" elsewhere. */
  identity?: "cookie" | "header" | undefined;
  /** Name of the server's cookie. Default: "atid". */
  cookieName?: string | undefined;
  /**
   * Headers of every request. A function is called for each request. `forRequest` omits `authorization`, `cookie` and
   * `x-thread-id`, so that a user never has the back end's credentials.
   */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined;
  /** Default: "same-origin". Use "include" for cookies of another origin. */
  credentials?: RequestCredentials | undefined;
  /** Default: the platform's `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Time limit of each attempt. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** Maximum attempts, including the first. Default: 4. */
  attempts?: number | undefined;
  /** Default: the platform's `JSON`. */
  json?: JsonFormat | undefined;
}

/** A client, or options for a new client. */
export type ClientSource = { client: Client } | ClientOptions;

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call immediately. A write may still have been applied. */
  signal?: AbortSignal | undefined;
  /** Time limit of each attempt. */
  timeoutMs?: number | undefined;
}

/** Options of every write. */
export interface WriteOptions extends CallOptions {
  /** Default: a random key per call, which all attempts send. */
  idempotencyKey?: string | undefined;
  /** Requires this version of the thread: an ETag, a version, or "*" for any existing thread. */
  ifMatch?: string | number | undefined;
  /** Requires this life of the thread: the part of its ETag after the hyphen. */
  life?: string | undefined;
  /** TTL of the thread if this write creates it. */
  ttlSeconds?: number | undefined;
}
