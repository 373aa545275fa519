import { checkDefined } from "./defined.js";
import { camel } from "./http/camel.js";
import type { Transport } from "./http/send.js";
import { write } from "./http/write.js";
import { encode, objectText } from "./thread/encode.js";
import type { ThreadById } from "./thread/thread.js";
import type { Threads } from "./types/client.js";
import type { ThreadInfo } from "./types/receipt.js";
import type { Thread } from "./types/thread.js";

export function threadsOf(service: Transport, byId: ThreadById): Threads {
  return {
    async create(init = {}, { schema, ...o } = {}) {
      checkDefined(init, "id", "owner");
      const { id, state, metadata, ttlSeconds, owner } = init;
      const members = { id, metadata, ttl_seconds: ttlSeconds, owner };
      const body = objectText(members, { state: state && encode(service.settings.json, state) });
      const info = camel<ThreadInfo>((await write(service, "POST", "/v1/threads", o, { body })).body);
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
