import { camel } from "../http/camel.js";
import { ThreadkeepError, VersionMismatchError } from "../http/errors.js";
import { segment } from "../http/request.js";
import type { Transport } from "../http/send.js";
import { write } from "../http/write.js";
import { encode } from "../thread/encode.js";
import { etagOf } from "../thread/responses.js";
import type { JsonFormat } from "../types/json.js";
import type { EntryInfo, KeyValue } from "../types/kv.js";
import { entryOf } from "./entry.js";

export const pathOf = (namespace: string): string => "/v1/kv/" + segment(namespace);

export function keyValueOf(transport: Transport, namespace: string): KeyValue {
  const root = pathOf(namespace);
  const { json } = transport.settings;
  const entryPath = (key: string) => `${root}/${segment(key)}`;
  return {
    async get(key, options) {
      try {
        const { bytes, headers } = await transport.send({ method: "GET", path: entryPath(key), options });
        return entryOf(bytes, headers.get("content-type")!, etagOf(headers), headers.get("x-expires-at"), json);
      } catch (error) {
        if (error instanceof ThreadkeepError && error.code === "key_not_found") return undefined;
        throw error;
      }
    },

    async put(key, body, { contentType, ttlSeconds, ifAbsent, ifMatch, ...o } = {}) {
      try {
        const response = await write(transport, "PUT", entryPath(key), o, {
          query: { ttl_seconds: ttlSeconds },
          headers: { "if-none-match": ifAbsent ? "*" : undefined, "if-match": ifMatch },
          body: bodyOf(body, json),
          contentType: contentType ?? typeOf(body),
        });
        return { ok: true, version: response.body.version, etag: etagOf(response.headers) };
      } catch (error) {
        if (ifAbsent && error instanceof VersionMismatchError) return { ok: false };
        throw error;
      }
    },

    async delete(key, { ifMatch, ...o } = {}) {
      return (await write(transport, "DELETE", entryPath(key), o, { headers: { "if-match": ifMatch } })).body.deleted;
    },

    async page({ prefix, cursor, limit, ...options } = {}) {
      const query = { prefix, cursor, limit };
      const { body } = await transport.json<any>({ method: "GET", path: root, query, options });
      return { keys: body.entries.map(camel<EntryInfo>), next: body.next_cursor ?? undefined };
    },

    async *keys(prefix, o) {
      let cursor: string | undefined;
      do {
        const { keys, next } = await this.page({ ...o, prefix, cursor, limit: 100 });
        for (const { key } of keys) yield key;
        cursor = next;
      } while (cursor);
    },

    async clear(o) {
      return (await write(transport, "DELETE", root, o)).body.deleted;
    },
  };
}

export const bodyOf = (body: unknown, json: JsonFormat): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : encode(json, body);

export const typeOf = (body: unknown): string =>
  typeof body === "string"
    ? "text/plain; charset=utf-8"
    : body instanceof Uint8Array
      ? "application/octet-stream"
      : "application/json";
