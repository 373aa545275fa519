import { clientOf } from "../client.js";
import { internalsOf } from "../internals.js";
import { batchOf } from "../kv/batch.js";
import type { KeyValueBatch } from "../types/kv.js";
import type { CallOptions, ClientSource } from "../types/options.js";
import { type Archives, archivesOf } from "./archives.js";
import { listNamespaces, type Namespace, type NamespaceOptions } from "./namespaces.js";
import { type Owners, ownersOf } from "./owners.js";
import { type Page, requestsOf } from "./requests.js";
import { type Scopes, scopesOf } from "./scopes.js";
import { type Tasks, tasksOf } from "./tasks.js";
import { type Tools, toolsOf } from "./tools.js";
import { type Transfer, transferOf } from "./transfer.js";
import { type Webhooks, webhooksOf } from "./webhooks.js";

export type { KeyedOptions } from "../http/write.js";
export type * from "./archives.js";
export type * from "./namespaces.js";
export type * from "./owners.js";
export type { Page } from "./requests.js";
export type * from "./scopes.js";
export type * from "./tasks.js";
export type * from "./tools.js";
export type * from "./transfer.js";
export type * from "./webhooks.js";

/** A server setting. Secrets in `value` are masked as `***`. */
export interface Setting {
  group: string;
  name: string;
  value: string;
  default: string;
  /** Where the value comes from: `default`, a file, an environment variable or a flag. */
  source: string;
  help: string;
}

export interface Admin extends Transfer {
  readonly tools: Tools;
  /** Returns the task list of a scope. */
  tasks(scope: string): Tasks;
  readonly scopes: Scopes;
  readonly archives: Archives;
  readonly webhooks: Webhooks;
  readonly owners: Owners;
  /** Returns a namespace with additional calls that read or write several entries at once. */
  kv(namespace: string): KeyValueBatch;
  namespaces(o?: NamespaceOptions): Promise<Page<Namespace>>;
  /** Returns the busiest and largest threads, as counted by the replica that answers the call. */
  stats(o?: CallOptions): Promise<{ [name: string]: any }>;
  /** Returns the settings of the replica that answers the call, with secrets masked. */
  settings(o?: CallOptions): Promise<{ settings: Setting[] }>;
  /** Returns the name and rights of the client's API key. */
  apiKey(o?: CallOptions): Promise<{ name: string; rights: string[] }>;
}

/** Creates a client for back-end operations, which require an API key. */
export function createAdmin(source: ClientSource = {}): Admin {
  const { service } = internalsOf(clientOf(source));
  const requests = requestsOf(service);
  return {
    ...transferOf(requests),
    tools: toolsOf(requests),
    tasks: (scope) => tasksOf(requests, scope),
    scopes: scopesOf(requests),
    archives: archivesOf(requests),
    webhooks: webhooksOf(requests),
    owners: ownersOf(requests),
    kv: (namespace) => batchOf(service, namespace),
    namespaces: (o) => listNamespaces(requests, o),
    stats: (o) => requests.get("/v1/stats", o),
    settings: (o) => requests.get("/v1/settings", o),
    apiKey: (o) => requests.get("/v1/api-keys/current", o),
  };
}
