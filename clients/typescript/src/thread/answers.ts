import type { Receipt } from "../types/receipt.js";

/** The version in an ETag: `"<version>-<life>"`. */
export const versionOf = (etag: string): number => Number.parseInt(etag.slice(1), 10) || 0;

export const etagOf = (headers: Headers): string => headers.get("etag") ?? "";

export function receiptOf(body: { version: number; size_bytes: number }, headers: Headers): Receipt {
  return {
    version: body.version,
    sizeBytes: body.size_bytes,
    etag: etagOf(headers),
    replayed: headers.get("idempotency-replayed") === "true",
  };
}

/** The value of `If-Match`. */
export function ifMatchOf(condition: string | number | undefined): string | undefined {
  return condition !== undefined && /^\d+$/.test(condition + "") ? `"${condition}"` : (condition as string | undefined);
}
