import type { JsonFormat } from "../types/json.js";
import type { Entry } from "../types/kv.js";

export function entryOf(
  bytes: Uint8Array,
  contentType: string,
  etag: string,
  expiresAt: string | null | undefined,
  format: JsonFormat,
): Entry {
  const text = () => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return { bytes, contentType, etag, expiresAt: expiresAt ?? undefined, text, json: () => format.parse(text()) };
}
