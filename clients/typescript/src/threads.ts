import { checkDefined } from "./defined.js";
import { camel } from "./http/camel.js";
import type { Transport } from "./http/send.js";
import { encode, objectText } from "./thread/encode.js";
import { idempotencyKey } from "./thread/idempotency-key.js";
import type { ThreadById } from "./thread/thread.js";
import type { Threads } from "./types/client.js";
import type { ThreadInfo } from "./types/receipt.js";
import type { Thread } from "./types/thread.js";

export function threadsOf(service: Transport, byId: ThreadById): Threads {
  return {
    async create(init = {}, { schema, idempotencyKey: key, ...options } = {}) {
      checkDefined(init, "id", "owner");
      const { id, state, metadata, ttlSeconds, owner } = init;
      const members = { id, metadata, ttl_seconds: ttlSeconds, owner };
      const texts = Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]);
      const { body } = await service.json<object>({
        method: "POST",
        path: "/v1/threads",
        headers: { "idempotency-key": key ?? idempotencyKey() },
        body: objectText({ ...Object.fromEntries(texts), state: state && encode(service.settings.json, state) }),
        options,
      });
      const info = camel<ThreadInfo>(body);
      return byId(info.id, info.signedId ?? undefined, schema) as Thread<any>;
    },

    async list(o = {}) {
      checkDefined(o, "owner");
      const { owner, order, limit, cursor, metadata = {}, ...options } = o;
      const filters = Object.entries(metadata).map(([name, value]) => ["metadata." + name, value]);
      const { body } = await service.json<{ threads: object[]; next_cursor?: string | null }>({
        method: "GET",
        path: "/v1/threads",
        query: { owner, order, limit, cursor, ...Object.fromEntries(filters) },
        options,
      });
      return { threads: body.threads.map(camel<ThreadInfo>), next: body.next_cursor ?? undefined };
    },
  };
}
