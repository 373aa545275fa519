import { clientOf } from "../client.js";
import type { ClientSource } from "../types/options.js";
import type { Scope } from "../types/scope.js";
import { digestOf } from "./names.js";

const MAX_ID_LENGTH = 128;

export type KvStoreFactoryOptions = ClientSource & {
  /** If true, all tools of a session or personality share one set of keys, as documented by Ethos. Default: true. */
  shared?: boolean | undefined;
};

export interface KvStore {
  get(key: string): Promise<string | null>;
  /** `ttlSeconds` defaults to the factory's `ttlSecondsDefault`. If neither is set, the value does not expire. */
  set(key: string, value: string, options?: { ttlSeconds?: number | undefined }): Promise<void>;
  delete(key: string): Promise<void>;
  list(prefix: string): Promise<string[]>;
  /** Adds to an integer atomically. */
  increment(key: string, by?: number | bigint): Promise<number | bigint>;
  /** Sets a value if the key does not have one. Returns whether the value was set. */
  setIfAbsent(key: string, value: string, options?: { ttlSeconds?: number | undefined }): Promise<boolean>;
}

export type KvStoreFactory = (
  tool: string,
  scopeId: string,
  options?: { ttlSecondsDefault?: number | undefined },
) => KvStore;

/** Creates key-value stores for the tools of Ethos. */
export function createKvStoreFactory(options: KvStoreFactoryOptions = {}): KvStoreFactory {
  const client = clientOf(options);
  const { shared = true } = options;

  return (tool, scopeId, { ttlSecondsDefault } = {}) => {
    const [, kind, id] = /^(tool|session|personality):(.*)$/s.exec(scopeId) ?? [];
    if (!kind || !id) {
      throw new TypeError("A scope ID is `tool:`, `session:` or `personality:`, followed by a name.");
    }
    checkTtl(ttlSecondsDefault);
    // an encoded name does not contain `/`, so the keys of two tools never collide
    const own = shared || kind === "tool" ? "" : encodeURIComponent(tool) + "/";
    let opened: Promise<Scope> | undefined;
    const scope = () => (opened ??= visible(id).then((name) => client.scope(`${kind}:${name}`)));
    const set = async (key: string, value: string, ttlSeconds = ttlSecondsDefault, ifAbsent = false) => {
      checkTtl(ttlSeconds);
      return (await scope()).set(own + key, value, { ttlSeconds, ifAbsent });
    };

    return {
      get: async (key) => (await scope()).get(own + key),

      set: async (key, value, { ttlSeconds } = {}) => {
        await set(key, value, ttlSeconds);
      },

      delete: async (key) => {
        await (await scope()).delete(own + key);
      },

      list: async (prefix) => {
        const keys = await (await scope()).keys(own + prefix);
        return keys.map((key) => key.slice(own.length));
      },

      increment: async (key, by) => (await scope()).increment(own + key, by),

      setIfAbsent: async (key, value, { ttlSeconds } = {}) => (await set(key, value, ttlSeconds, true)).ok,
    };
  };
}

/** Encodes a name as visible ASCII, which scope names require. Hashes long names. */
async function visible(name: string): Promise<string> {
  const encoded = encodeURIComponent(name);
  return encoded.length <= MAX_ID_LENGTH ? encoded : "~" + (await digestOf(name));
}

function checkTtl(ttlSeconds: number | undefined): void {
  if (ttlSeconds !== undefined && !(Number.isInteger(ttlSeconds) && ttlSeconds >= 1)) {
    throw new RangeError("A TTL is a whole number of seconds, at least 1.");
  }
}
