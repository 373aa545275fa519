/** Responses of the service, with the members that the console reads. Client data remains unparsed (`json/text.ts`). */

export interface Thread {
  id: string;
  exists: boolean;
  version: number;
  size_bytes: number;
  limit_bytes: number;
  keys: number;
  created_at: string | null;
  updated_at: string | null;
  expires_at: string | null;
  ttl_seconds: number;
  owner?: string;
  signed_id?: string;
  metadata: string;
}

export interface ApiKey {
  name: string;
  rights: string[];
}

export interface ServerInfo {
  name: string;
  version: string;
  store: "memory" | "redis";
  api_keys: boolean;
}

export interface Checkpoint {
  checkpoint: number;
  name: string | null;
  version: number;
  size_bytes: number;
  created_at: string;
}

export interface Webhook {
  id: string;
  url: string;
  events: string[];
  name: string | null;
  created_at: string | null;
  secret?: string;
}

export interface FailedEvent {
  event_id: string;
  type: string;
  thread_id?: string;
  scope?: string;
  time: string | null;
  attempts: number;
  first_attempt_at: string | null;
  last_error: string;
}

/** An event that is waiting for its next delivery attempt, or for the delivery of an earlier event. */
export interface PendingEvent {
  event_id: string;
  type: string;
  thread_id?: string;
  scope?: string;
  attempts: number;
  next_attempt_at: string | null;
  last_error: string | null;
}

export interface Archive {
  id: string;
  life: string;
  version: number;
  size_bytes: number;
  reason: string;
  ended_at: string;
  history_count?: number;
  metadata: string;
}

export interface Setting {
  group: string;
  name: string;
  value: string;
  default: string;
  source: string;
  help: string;
}

export const EVENT_TYPES = [
  "thread.created",
  "thread.updated",
  "thread.destroyed",
  "thread.rotated",
  "thread.forked",
  "history.appended",
  "kv_updated",
  "task_list_updated",
  "session.completed",
] as const;
