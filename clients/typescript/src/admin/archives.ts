import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import { pageOf } from "../thread/history.js";
import type { HistoryItem, PageOptions } from "../types/history.js";
import type { CallOptions } from "../types/options.js";
import type { ThreadInfo } from "../types/receipt.js";
import type { Page, Requests } from "./requests.js";

export interface Archive {
  id: string;
  /** Identifies the ended thread among all threads that had this ID. */
  life: string;
  version: number;
  sizeBytes: number;
  reason: string;
  endedAt: string | null;
  metadata: { [key: string]: any };
  checkpoints?: number[];
  historyCount?: number | null;
  historyUrl?: string | null;
}

interface LifeOptions extends CallOptions {
  /** Default: the newest archive of the thread ID. */
  life?: string | undefined;
}

/** Lists, shows and restores ended threads that the server still retains. */
export interface Archives {
  list(
    o?: CallOptions & { since?: string | undefined; cursor?: string | undefined; limit?: number | undefined },
  ): Promise<Page<Archive>>;
  get(id: string, o?: LifeOptions): Promise<Archive & { state: { [key: string]: any } }>;
  history(id: string, o?: PageOptions & LifeOptions): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  restore(id: string, o?: LifeOptions): Promise<ThreadInfo>;
}

const root = "/v1/archives";
const pathOf = (id: string) => `${root}/${segment(id)}`;

export const archivesOf = (requests: Requests): Archives => ({
  list: ({ since, cursor, limit, ...o } = {}) =>
    requests.list<Archive>(root, "archives", { since, cursor, limit }, o),

  async get(id, { life, ...o } = {}) {
    const { body } = await requests.transport.value({ method: "GET", path: pathOf(id), query: { life }, options: o });
    return camel(body);
  },

  async history(id, { life, after, before, order, limit, tail, ...options } = {}) {
    const query = { life, after, before, order, limit, tail };
    const { body } = await requests.transport.value({ method: "GET", path: pathOf(id) + "/history", query, options });
    return pageOf(body);
  },

  async restore(id, { life, ...o } = {}) {
    return camel(await requests.once("POST", pathOf(id) + "/restore", undefined, o, { life }));
  },
});
