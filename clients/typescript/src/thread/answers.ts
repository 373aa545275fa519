import { camel } from "../http/camel.js";
import { ThreadkeepError } from "../http/errors.js";
import type { Answer } from "./calls.js";

/** The version in an ETag: `"<version>-<life>"`. */
export const versionOf = (etag: string): number => Number.parseInt(etag.slice(1), 10) || 0;

/**
 * The ETag as the server sent it. It has only strong ones, which proxies weaken when they compress a body. If a proxy has removed it, the
 * version takes its place, which is a condition too.
 */
export function etagOf(headers: Headers): string {
  const version = headers.get("x-thread-version");
  const etag = headers.get("etag")?.replace("W/", "") ?? (version && `"${version}"`);
  if (!etag) throw new ThreadkeepError("untagged", "The response has neither an ETag nor x-thread-version: a proxy has removed them.");
  return etag;
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
