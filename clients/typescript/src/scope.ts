import { exactIntegers, integer } from "./http/integers.js";
import type { Transport } from "./http/send.js";
import { objectText } from "./thread/encode.js";
import { idempotencyKey } from "./thread/idempotency-key.js";
import type { CallOptions } from "./types/options.js";
import type { Scope, ScopeWriteOptions } from "./types/scope.js";

export function scopeOf(transport: Transport, scope: string): Scope {
  const send = (method: string, path: string, members: object, headers: { [name: string]: string }, options?: CallOptions, by?: string) => {
    const texts = Object.entries({ scope, ...members }).map(([name, value]) => [name, JSON.stringify(value)]);
    const body = objectText({ ...Object.fromEntries(texts), by });
    return transport.json<any>({ method, path: "/v1/scopes" + path, headers, body, options });
  };
  const read = async (path: string, members: object, o?: CallOptions) => (await send("POST", path, members, {}, o)).body;
  const write = (path: string, members: object, { idempotencyKey: key, ifVersion, ...o }: ScopeWriteOptions = {}, by?: string) => {
    const headers = { "idempotency-key": key ?? idempotencyKey() };
    return send(path ? "POST" : "DELETE", path, { ...members, if_version: ifVersion }, headers, o, by);
  };
  return {
    async get(key, o) {
      return (await read("/keys/get", { key }, o)).value;
    },

    async getMany(keys, o) {
      return keys.length ? (await read("/keys/get", { keys }, o)).values : {};
    },

    async set(key, value, { ttlSeconds, ifAbsent, ...o } = {}) {
      const { body } = await write("/keys/set", { key, value, ttl_seconds: ttlSeconds, if_absent: ifAbsent }, o);
      return { ok: body.ok, version: body.version };
    },

    async delete(key, o) {
      return (await write("/keys/delete", { key }, o)).body.deleted;
    },

    async keys(prefix, o) {
      return (await read("/keys/list", { prefix }, o)).keys;
    },

    async increment(key, by = 1, o) {
      return integer(exactIntegers((await write("/keys/increment", { key }, o, by + "")).text).value)!;
    },

    async end(o) {
      await write("", {}, o);
    },
  };
}
