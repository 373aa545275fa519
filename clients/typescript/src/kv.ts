import { camel } from "./http/camel.js";
import { VersionMismatchError, ThreadkeepError } from "./http/errors.js";
import { type Query, segment } from "./http/request.js";
import type { Sending } from "./http/send.js";
import { encode } from "./thread/encode.js";
import { etagOf } from "./thread/answers.js";
import { idempotencyKey } from "./thread/idempotency-key.js";
import type { Entry, EntryInfo, KeyPageOptions, KeyValue, KeyValueWriteOptions, NewEntry, PutOutcome } from "./types/kv.js";
import type { JsonFormat } from "./types/json.js";
import type { CallOptions } from "./types/options.js";

const MAX_KEYS = 100;

type WireEntry = { key: string; body?: string; base64?: string; content_type: string; etag: string; expires_at?: string | null };
type PutOptions = KeyValueWriteOptions & {
  contentType?: string | undefined;
  ttlSeconds?: number | undefined;
  ifAbsent?: boolean | undefined;
  ifMatch?: string | undefined;
};

export class KeyValueOf implements KeyValue {
  readonly #sending: Sending;
  readonly #path: string;

  constructor(sending: Sending, namespace: string) {
    this.#sending = sending;
    this.#path = "/v1/kv/" + segment(namespace);
  }

  async get(key: string, options?: CallOptions) {
    try {
      const { bytes, headers } = await this.#sending.send({ method: "GET", path: this.#at(key), options });
      const expiresAt = headers.get("x-expires-at");
      return this.#entry(bytes, headers.get("content-type") ?? "", etagOf(headers), expiresAt);
    } catch (error) {
      if (error instanceof ThreadkeepError && error.code === "key_not_found") return undefined;
      throw error;
    }
  }

  async getMany(keys: readonly string[], options?: CallOptions) {
    const found = new Map<string, Entry>();
    let wanted = [...new Set(keys)];
    while (wanted.length) {
      const body = JSON.stringify({ keys: wanted.slice(0, MAX_KEYS) });
      const answer = await this.#sending.json<{ entries: WireEntry[]; unread: string[] }>({
        method: "POST",
        path: this.#path + "/get",
        body,
        options,
      });
      for (const entry of answer.body.entries) found.set(entry.key, this.#wireEntry(entry));
      wanted = [...answer.body.unread, ...wanted.slice(MAX_KEYS)];
    }
    return found;
  }

  async put(key: string, body: NewEntry["body"], { contentType, ttlSeconds, ifAbsent, ifMatch, ...o }: PutOptions = {}) {
    try {
      const answer = await this.#write("PUT", this.#at(key), o, {
        query: { ttl_seconds: ttlSeconds },
        headers: { "if-none-match": ifAbsent ? "*" : undefined, "if-match": ifMatch },
        body: bodyOf(body, this.#sending.settings.json),
        contentType: contentType ?? typeOf(body),
      });
      return { ok: true, version: answer.body.version, etag: etagOf(answer.headers) };
    } catch (error) {
      if (ifAbsent && error instanceof VersionMismatchError) return { ok: false };
      throw error;
    }
  }

  async putMany(entries: readonly NewEntry[], o?: KeyValueWriteOptions) {
    const wire = entries.map(({ key, body, contentType, ttlSeconds, ifAbsent }) => ({
      key,
      ...(body instanceof Uint8Array ? { base64: base64(body) } : { body: bodyOf(body, this.#sending.settings.json) }),
      content_type: contentType ?? typeOf(body),
      ttl_seconds: ttlSeconds,
      if_absent: ifAbsent,
    }));
    const { body } = await this.#write("POST", this.#path + "/put", o, { body: JSON.stringify({ entries: wire }) });
    return body.entries.map(camel<PutOutcome>);
  }

  async delete(key: string, { ifMatch, ...o }: KeyValueWriteOptions & { ifMatch?: string | undefined } = {}) {
    return (await this.#write("DELETE", this.#at(key), o, { headers: { "if-match": ifMatch } })).body.deleted;
  }

  async page({ prefix, cursor, limit, order, bodies, ...options }: KeyPageOptions = {}) {
    const { body } = await this.#sending.json<{ keys: WireEntry[]; next_cursor?: string | null }>({
      method: "GET",
      path: this.#path,
      query: { prefix, cursor, limit, order, bodies },
      options,
    });
    const keys = body.keys.map((wire) => {
      const { body: _, base64: __, ...rest } = wire;
      return { ...camel<EntryInfo>(rest), ...(bodies ? { entry: this.#wireEntry(wire) } : {}) };
    });
    return { keys, ...(body.next_cursor ? { next: body.next_cursor } : {}) };
  }

  async *keys(prefix?: string, o?: CallOptions): AsyncIterableIterator<string> {
    let cursor: string | undefined;
    do {
      const page: { keys: EntryInfo[]; next?: string } = await this.page({ ...o, prefix, cursor, limit: 100 });
      for (const { key } of page.keys) yield key;
      cursor = page.next;
    } while (cursor);
  }

  async clear(o?: KeyValueWriteOptions) {
    return (await this.#write("DELETE", this.#path, o, {})).body.deleted;
  }

  async configure(
    { defaultTtlSeconds, idleTtlSeconds }: { defaultTtlSeconds?: number | null | undefined; idleTtlSeconds?: number | null | undefined },
    o?: KeyValueWriteOptions,
  ) {
    const body = JSON.stringify({ default_ttl_seconds: defaultTtlSeconds, idle_ttl_seconds: idleTtlSeconds });
    await this.#write("PUT", this.#path, o, { body });
  }

  #at(key: string): string {
    return `${this.#path}/${segment(key)}`;
  }

  #write(
    method: string,
    path: string,
    { idempotencyKey: key, ...options }: KeyValueWriteOptions = {},
    part: { query?: Query; headers?: { [name: string]: string | undefined }; body?: string | Uint8Array; contentType?: string },
  ) {
    const headers = { ...part.headers, "idempotency-key": key ?? idempotencyKey() };
    return this.#sending.json<any>({ method, path, ...part, headers, options });
  }

  #wireEntry({ body, base64, content_type, etag, expires_at }: WireEntry): Entry {
    const bytes =
      base64 === undefined
        ? new TextEncoder().encode(body)
        : Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return this.#entry(bytes, content_type, etag, expires_at);
  }

  #entry(bytes: Uint8Array, contentType: string, etag: string, expiresAt?: string | null): Entry {
    const text = () => new TextDecoder().decode(bytes);
    const json = () => this.#sending.settings.json.parse(text());
    return { bytes, contentType, etag, ...(expiresAt ? { expiresAt } : {}), text, json };
  }
}

const bodyOf = (body: unknown, json: JsonFormat): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : encode(json, body);

function typeOf(body: unknown): string {
  if (typeof body === "string") return "text/plain; charset=utf-8";
  return body instanceof Uint8Array ? "application/octet-stream" : "application/json";
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
