import type { CallOptions } from "../types/options.js";
import type { Page, Requests } from "./requests.js";

export interface Namespace {
  namespace: string;
  entries: number;
  sizeBytes: number;
  defaultTtlSeconds?: number | null;
  idleTtlSeconds?: number | null;
  createdAt?: string | null;
  lastUsedAt?: string | null;
  expiresAt?: string | null;
}

export interface NamespaceOptions extends CallOptions {
  /** Returns only this namespace. */
  namespace?: string | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
}

export const listNamespaces = (
  requests: Requests,
  { namespace, cursor, limit, ...o }: NamespaceOptions = {},
): Promise<Page<Namespace>> => requests.list("/v1/kv", "namespaces", { namespace, cursor, limit }, o);
