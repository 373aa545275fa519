import { integer, parseWithLongIntegers } from "./http/integers.js";
import type { Sending } from "./http/send.js";
import { idempotencyKey } from "./thread/idempotency-key.js";
import { objectText } from "./thread/encode.js";
import type { CallOptions } from "./types/options.js";
import type { Scope, ScopeWriteOptions } from "./types/scope.js";

export class ScopeOf implements Scope {
  readonly #sending: Sending;
  readonly #name: string;

  constructor(sending: Sending, name: string) {
    this.#sending = sending;
    this.#name = name;
  }

  async get(key: string, o?: CallOptions) {
    return (await this.#read("/kv/get", { key }, o)).value;
  }

  async getMany(keys: readonly string[], o?: CallOptions) {
    return keys.length ? (await this.#read("/kv/get", { keys }, o)).values : {};
  }

  async set(
    key: string,
    value: string,
    { ttlSeconds, ifAbsent, ...o }: ScopeWriteOptions & { ttlSeconds?: number | undefined; ifAbsent?: boolean | undefined } = {},
  ) {
    const { body } = await this.#write("POST", "/kv/set", { key, value, ttl_seconds: ttlSeconds, if_absent: ifAbsent }, o);
    return { ok: body.ok, version: body.version };
  }

  async delete(key: string, o?: ScopeWriteOptions) {
    return (await this.#write("POST", "/kv/delete", { key }, o)).body.deleted;
  }

  async list(prefix?: string, o?: CallOptions) {
    return (await this.#read("/kv/list", { prefix }, o)).keys;
  }

  async increment(key: string, by: number | bigint = 1, o?: ScopeWriteOptions) {
    const { text } = await this.#write("POST", "/kv/increment", { key }, o, by.toString());
    return integer((parseWithLongIntegers(text) as { value: number | string }).value)!;
  }

  async end(o?: ScopeWriteOptions) {
    await this.#write("DELETE", "", {}, o);
  }

  async #read(path: string, body: object, options: CallOptions | undefined): Promise<any> {
    const request = { method: "POST", path: "/v1/scopes" + path, body: this.#text(body), options };
    return (await this.#sending.json(request)).body;
  }

  #write(method: string, path: string, body: object, { idempotencyKey: key, ifVersion, ...options }: ScopeWriteOptions = {}, by?: string) {
    return this.#sending.json<any>({
      method,
      path: "/v1/scopes" + path,
      headers: { "idempotency-key": key ?? idempotencyKey() },
      body: this.#text({ ...body, if_version: ifVersion }, by),
      options,
    });
  }

  #text(body: object, by?: string): string {
    const members = Object.entries({ scope: this.#name, ...body }).map(([name, value]) => [name, JSON.stringify(value)]);
    return objectText({ ...Object.fromEntries(members), by });
  }
}
