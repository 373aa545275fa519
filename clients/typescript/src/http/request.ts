import type { CallOptions } from "../types/options.js";

export type Query = { [name: string]: string | number | boolean | readonly string[] | undefined };

/** A request to the server, without the identity of its sender. */
export interface ServerRequest {
  method: string;
  /** The path below the base URL, or a function of the thread's own path. */
  path: string | ((thread: string) => string);
  query?: Query | undefined;
  headers?: { [name: string]: string | undefined } | undefined;
  body?: string | Uint8Array | undefined;
  /** The content type of the body. Default: JSON. */
  contentType?: string | undefined;
  options?: CallOptions | undefined;
  /** Time that the server may take in addition. */
  extraMs?: number | undefined;
  /** The response names a fresh thread of this identity, or a thread that is not of this identity. */
  names?: "fresh" | "other" | undefined;
  /** Must not be sent again when it may have been performed. */
  once?: boolean | undefined;
}

/** A segment of a path. A URL cannot carry some of them: they would name another path. */
export function segment(text: string | number): string {
  if (/^\.{0,2}$/.test(text + "")) throw new TypeError("A URL cannot carry this name.");
  return encodeURIComponent(text);
}

export function queryText(query: Query = {}): string {
  const text = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().map((one) => [name, one + ""]),
    ),
  ).toString();
  return text && "?" + text;
}
