import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import { type KeyedOptions, write } from "../http/write.js";
import type { CallOptions } from "../types/options.js";
import type { ThreadInfo } from "../types/receipt.js";
import type { Requests } from "./requests.js";

/** Operations on the users or companies that own threads. */
export interface Owners {
  get(owner: string, o?: CallOptions): Promise<{ owner: string; threads: number; sizeBytes: number }>;
  /** Erases all of an owner's data, with as many requests as necessary. */
  erase(owner: string, o?: CallOptions): Promise<{ threads: number; archives: number }>;
  /** Assigns a thread to `owner`. If `owner` is null, removes the thread's owner. */
  assign(threadId: string, owner: string | null, o?: KeyedOptions): Promise<ThreadInfo>;
}

const pathOf = (owner: string) => "/v1/owners/" + segment(owner);

export const ownersOf = (requests: Requests): Owners => ({
  async get(owner, o) {
    return camel(await requests.get(pathOf(owner), o));
  },

  async erase(owner, o) {
    const total = { threads: 0, archives: 0 };
    for (;;) {
      const { threads, archives, complete } = await requests.delete(pathOf(owner), o);
      total.threads += threads;
      total.archives += archives;
      if (complete) return total;
    }
  },

  async assign(threadId, owner, o) {
    const body = JSON.stringify({ owner });
    return camel((await write(requests.transport, "PATCH", "/v1/threads/" + segment(threadId), o, { body })).body);
  },
});
