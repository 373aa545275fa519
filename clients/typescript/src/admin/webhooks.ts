import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { CallOptions } from "../types/options.js";
import type { Page, Requests } from "./requests.js";

export type WebhookEventType =
  | "thread.created"
  | "thread.updated"
  | "thread.destroyed"
  | "thread.rotated"
  | "session.completed"
  | "kv_updated"
  | "task_list_updated"
  | "history.appended"
  | "thread.forked";

export interface Webhook {
  id: string;
  url: string;
  events: WebhookEventType[];
  name?: string | null;
  createdAt: string | null;
  /** Present only in the response to the call that sets the secret. */
  secret?: string | null;
}

export interface FailedDelivery {
  eventId: string;
  type: WebhookEventType;
  threadId?: string | null;
  scope?: string | null;
  time?: string | null;
  attempts: number;
  firstAttemptAt?: string | null;
  lastError: string;
}

export type PendingDelivery = Omit<FailedDelivery, "lastError"> & {
  nextAttemptAt: string | null;
  lastError: string | null;
};

export interface Webhooks {
  list(o?: CallOptions): Promise<Webhook[]>;
  create(
    webhook: { url: string; events: readonly WebhookEventType[]; secret?: string | null | undefined },
    o?: CallOptions,
  ): Promise<Webhook>;
  get(id: string, o?: CallOptions): Promise<Webhook>;
  /** Changes an endpoint. If `secret` is null, the server generates a new secret. */
  update(
    id: string,
    change: {
      url?: string | undefined;
      events?: readonly WebhookEventType[] | undefined;
      secret?: string | null | undefined;
    },
    o?: CallOptions,
  ): Promise<Webhook>;
  delete(id: string, o?: CallOptions): Promise<void>;
  pending(id: string, o?: CallOptions): Promise<{ pending: PendingDelivery[]; total: number }>;
  failed(
    id: string,
    o?: CallOptions & { cursor?: string | undefined; limit?: number | undefined },
  ): Promise<Page<FailedDelivery>>;
  /** Resends the failed events with the IDs `events`, or by default all failed events. Returns how many were resent. */
  replay(id: string, events?: readonly string[], o?: CallOptions): Promise<number>;
}

const root = "/v1/webhooks";
const pathOf = (id: string) => `${root}/${segment(id)}`;

export const webhooksOf = (requests: Requests): Webhooks => ({
  async list(o) {
    return (await requests.get(root, o)).webhooks.map(camel<Webhook>);
  },

  async create(webhook, o) {
    return camel(await requests.once("POST", root, webhook, o));
  },

  async get(id, o) {
    return camel(await requests.get(pathOf(id), o));
  },

  async update(id, change, o) {
    return camel(await requests.once("PATCH", pathOf(id), change, o));
  },

  async delete(id, o) {
    await requests.delete(pathOf(id), o);
  },

  async pending(id, o) {
    const { pending, total } = await requests.get(pathOf(id) + "/pending", o);
    return { pending: pending.map(camel<PendingDelivery>), total };
  },

  failed: (id, { cursor, limit, ...o } = {}) =>
    requests.list<FailedDelivery>(pathOf(id) + "/failed", "failed", { cursor, limit }, o),

  async replay(id, events, o) {
    return (await requests.once("POST", pathOf(id) + "/replay", { events }, o)).replayed;
  },
});
