import { exactIntegers, integer } from "./http/integers.js";
import type { Transport } from "./http/send.js";
import { write } from "./http/write.js";
import { objectText } from "./thread/encode.js";
import type { CallOptions } from "./types/options.js";
import type { Scope, ScopeWriteOptions } from "./types/scope.js";

export function scopeOf(transport: Transport, scope: string): Scope {
  const read = async (path: string, members: object, options?: CallOptions) => {
    const body = JSON.stringify({ scope, ...members });
    return (await transport.json<any>({ method: "POST", path: "/v1/scopes" + path, body, options })).body;
  };
  const change = (path: string, members: object, { ifVersion, ...o }: ScopeWriteOptions = {}, by?: string) => {
    const body = objectText({ scope, ...members, if_version: ifVersion }, { by });
    return write(transport, path ? "POST" : "DELETE", "/v1/scopes" + path, o, { body });
  };
  return {
    async get(key, o) {
      return (await read("/keys/get", { key }, o)).value;
    },

    async getMany(keys, o) {
      return keys.length ? (await read("/keys/get", { keys }, o)).values : {};
    },

    async set(key, value, { ttlSeconds, ifAbsent, ...o } = {}) {
      const { body } = await change("/keys/set", { key, value, ttl_seconds: ttlSeconds, if_absent: ifAbsent }, o);
      return { ok: body.ok, version: body.version };
    },

    async delete(key, o) {
      return (await change("/keys/delete", { key }, o)).body.deleted;
    },

    async keys(prefix, o) {
      return (await read("/keys/list", { prefix }, o)).keys;
    },

    async increment(key, by = 1, o) {
      return integer(exactIntegers((await change("/keys/increment", { key }, o, by + "")).text).value)!;
    },

    async end(o) {
      await change("", {}, o);
    },
  };
}
