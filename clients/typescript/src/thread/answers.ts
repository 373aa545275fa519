import { camel } from "../http/camel.js";
import type { Answer } from "./calls.js";

/** The version in an ETag: `"<version>-<life>"`. */
export const versionOf = (etag: string): number => Number.parseInt(etag.slice(1), 10) || 0;

export const etagOf = (headers: Headers): string => headers.get("etag") ?? "";

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
