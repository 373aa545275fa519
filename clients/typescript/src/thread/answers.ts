import { camel } from "../http/camel.js";
import { ThreadkeepError } from "../http/errors.js";
import type { Answer } from "./calls.js";

/** The version in an ETag: `"<version>-<life>"`. */
export const versionOf = (etag: string): number => Number.parseInt(etag.slice(1), 10) || 0;

/** The tag of the server in one that a proxy has weakened or extended: `W/"7-<life>"`, `"7-<life>-gzip"`. */
const TAG = /^(?:W\/)?"(\d+-[0-9a-f]{16})\b/;

/** Returns the server's ETag. If a proxy removed or replaced it, returns the version, which `If-Match` also accepts. */
export function etagOf(headers: Headers): string {
  const tag = headers.get("etag")?.match(TAG)?.[1] ?? headers.get("x-thread-version");
  if (!tag) throw new ThreadkeepError("untagged", "The response has neither an ETag nor x-thread-version: a proxy has removed them.");
  return `"${tag}"`;
}

/** The answer to a write, with all members of its body. */
export const receiptOf = ({ body, headers }: Answer): any => ({
  ...camel(body),
  etag: etagOf(headers),
  replayed: headers.get("idempotency-replayed") === "true",
});

/** The value of `If-Match`. */
export function ifMatchOf(condition: string | number | undefined): string | undefined {
  return condition !== undefined && /^\d+$/.test(condition + "") ? `"${condition}"` : (condition as string | undefined);
}
