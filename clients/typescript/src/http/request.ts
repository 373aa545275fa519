import { definedEntries } from "../defined.js";
import type { CallOptions } from "../types/options.js";

export type Query = { [name: string]: string | number | boolean | readonly string[] | undefined };

export interface ServerRequest {
  method: string;
  path: string | ((thread: string) => string);
  query?: Query | undefined;
  headers?: { [name: string]: string | undefined } | undefined;
  body?: string | Uint8Array | undefined;
  /** Default: JSON. */
  contentType?: string | undefined;
  options?: CallOptions | undefined;
  extraMs?: number | undefined;
  /** Set if the response names another thread in `x-thread-id`: "new" if the client switches to it, or else "other". */
  responseThread?: "new" | "other" | undefined;
  /** If true, retries only if it is certain that the server did not perform the request. */
  once?: boolean | undefined;
}

/** Encodes a path segment. Throws if `text` is empty, `.` or `..`, which would change the path. */
export function segment(text: string | number): string {
  if (/^\.{0,2}$/.test(text + "")) throw new TypeError("A URL cannot carry this name.");
  return encodeURIComponent(text);
}

export function queryText(query: Query = {}): string {
  const text = new URLSearchParams(
    definedEntries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one + ""])),
  ).toString();
  return text && "?" + text;
}
