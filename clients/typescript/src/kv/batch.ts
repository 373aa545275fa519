import { base64, fromBase64 } from "../bytes.js";
import { camel } from "../http/camel.js";
import type { Transport } from "../http/send.js";
import { write } from "../http/write.js";
import type { Entry, EntryInfo, KeyValueBatch, PutOutcome } from "../types/kv.js";
import { entryOf } from "./entry.js";
import { bodyOf, keyValueOf, pathOf, typeOf } from "./key-value.js";

const MAX_KEYS = 100;

interface WireEntry {
  key: string;
  body?: string;
  base64?: string;
  content_type: string;
  etag: string;
  expires_at?: string | null;
}

export function batchOf(transport: Transport, namespace: string): KeyValueBatch {
  const root = pathOf(namespace);
  const { json } = transport.settings;
  const entry = ({ body, base64, content_type, etag, expires_at }: WireEntry): Entry => {
    const bytes = base64 === undefined ? new TextEncoder().encode(body) : fromBase64(base64);
    return entryOf(bytes, content_type, etag, expires_at, json);
  };
  return {
    ...keyValueOf(transport, namespace),

    async entries({ prefix, cursor, limit, order, ...options } = {}) {
      const { body } = await transport.json<{ entries: WireEntry[]; next_cursor?: string | null }>({
        method: "GET",
        path: root,
        query: { prefix, cursor, limit, order, bodies: true },
        options,
      });
      const entries = body.entries.map((wire) => {
        const { key, sizeBytes, updatedAt = null } = camel<EntryInfo>(wire);
        return { key, sizeBytes, updatedAt, ...entry(wire) };
      });
      return { entries, next: body.next_cursor ?? undefined };
    },

    async getMany(keys, options) {
      const found = new Map<string, Entry>();
      let remaining = [...new Set(keys)];
      while (remaining.length) {
        const { body } = await transport.json<{ entries: WireEntry[]; unread: string[] }>({
          method: "POST",
          path: root + "/get",
          body: JSON.stringify({ keys: remaining.slice(0, MAX_KEYS) }),
          options,
        });
        for (const wire of body.entries) found.set(wire.key, entry(wire));
        remaining = [...body.unread, ...remaining.slice(MAX_KEYS)];
      }
      return found;
    },

    async putMany(entries, o) {
      const wire = entries.map(({ key, body, contentType, ttlSeconds, ifAbsent }) => ({
        key,
        ...(body instanceof Uint8Array ? { base64: base64(body) } : { body: bodyOf(body, json) }),
        content_type: contentType ?? typeOf(body),
        ttl_seconds: ttlSeconds,
        if_absent: ifAbsent,
      }));
      const { body } = await write(transport, "POST", root + "/put", o, { body: JSON.stringify({ entries: wire }) });
      return body.entries.map(camel<PutOutcome>);
    },

    async configure({ defaultTtlSeconds, idleTtlSeconds }, o) {
      const body = JSON.stringify({ default_ttl_seconds: defaultTtlSeconds, idle_ttl_seconds: idleTtlSeconds });
      await write(transport, "PUT", root, o, { body });
    },
  };
}
