import type { Client } from "./client.js";
import type { JsonFormat } from "./json.js";

export interface ClientOptions {
  /** The address of the server. Default: in a page its own origin, elsewhere the variable THREADKEEP_URL. */
  baseUrl?: string | URL | undefined;
  /**
   * For back ends. Default: the variable THREADKEEP_API_KEY, unless the options have another credential: `token`,
   * `signedId`, or a header `authorization`, `cookie` or `x-thread-id`. Empty: no key. A function is called for each request.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** The login of a user, such as a JWT. Excludes `apiKey`. A function is called for each request. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** The thread that `current()` starts with. */
  signedId?: string | undefined;
  /** How the server knows the caller of `current()`. Default: "cookie" in a page, "header" elsewhere. */
  identity?: "cookie" | "header" | undefined;
  /** The name of the server's cookie. Default: "atid". */
  cookieName?: string | undefined;
  /**
   * Headers for every request. A function is called for each of them. `forRequest` omits `authorization`, `cookie` and
   * `x-thread-id`, so that a user never has the credential of the back end.
   */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined;
  /** Default: "same-origin". Use "include" for cookies of another origin. */
  credentials?: RequestCredentials | undefined;
  /** Default: the platform's. */
  fetch?: typeof fetch | undefined;
  /** The time for each attempt. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** The number of attempts, the first one included. Default: 4. */
  attempts?: number | undefined;
  /** Default: the platform's `JSON`. */
  json?: JsonFormat | undefined;
}

/** A client, or the options for one. */
export type ClientSource = { client: Client } | ClientOptions;

/** Options of every call. */
export interface CallOptions {
  /** Ends the call at once. A write may still have been applied. */
  signal?: AbortSignal | undefined;
  /** The time for each attempt. */
  timeoutMs?: number | undefined;
}

/** Options of every write. */
export interface WriteOptions extends CallOptions {
  /** Default: a new random key for each call, sent with each attempt. */
  idempotencyKey?: string | undefined;
  /** Writes only if the thread has this version: an ETag, a version, or "*" for any thread that exists. */
  ifMatch?: string | number | undefined;
  /** Writes only if the thread is still in this life: the part of its ETag after the hyphen. */
  life?: string | undefined;
  /** The lifetime of the thread, if this write creates it. */
  ttlSeconds?: number | undefined;
}
