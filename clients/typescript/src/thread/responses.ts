import { camel } from "../http/camel.js";
import { ThreadkeepError } from "../http/errors.js";
import type { ParsedResponse } from "./calls.js";

/** Parses the version in an ETag: `"<version>-<life>"`. */
export const versionOf = (etag: string): number => Number.parseInt(etag.slice(1), 10) || 0;

/** Matches the server's ETag, even if a proxy has weakened or extended it: `W/"7-<life>"`, `"7-<life>-gzip"`. */
const TAG = /^(?:W\/)?"(\d+-[0-9a-f]{16})\b/;

/** Returns the server's ETag. If a proxy replaced the ETag, returns the version, which `If-Match` also accepts. */
export function etagOf(headers: Headers): string {
  const tag = headers.get("etag")?.match(TAG)?.[1] ?? headers.get("x-thread-version");
  if (!tag) throw new ThreadkeepError("untagged", "The response has neither an ETag nor x-thread-version: a proxy has removed them.");
  return `"${tag}"`;
}

export const receiptOf = ({ body, headers }: ParsedResponse): any => ({
  ...camel(body),
  etag: etagOf(headers),
  replayed: headers.get("idempotency-replayed") === "true",
});

export function ifMatchOf(condition: string | number | undefined): string | undefined {
  return condition !== undefined && /^\d+$/.test(condition + "") ? `"${condition}"` : (condition as string | undefined);
}
