import { listenToAll } from "./events/listen.js";
import { attempt } from "./http/attempt.js";
import { snake } from "./http/camel.js";
import { Sending } from "./http/send.js";
import { ByCookie } from "./identity/by-cookie.js";
import { ByHeader } from "./identity/by-header.js";
import { ById, Service } from "./identity/by-id.js";
import { ByRequest } from "./identity/by-request.js";
import type { Identity } from "./identity/identity.js";
import { keepInternals } from "./internals.js";
import { KeyValueOf } from "./kv.js";
import { ScopeOf } from "./scope.js";
import { type Settings, settingsOf } from "./settings.js";
import { encode, objectText } from "./thread/encode.js";
import { idempotencyKey } from "./thread/idempotency-key.js";
import { type ThreadById, ThreadOf } from "./thread/thread.js";
import { threadInfo } from "./thread/thread-info.js";
import type { Client, IncomingRequest, ListOptions, NewThread, ThreadOptions } from "./types/client.js";
import type { ClientOptions, ClientSource, WriteOptions } from "./types/options.js";
import type { RequestThread } from "./types/thread.js";

type Own = { [name: string]: string };

/** Makes a client. It sends nothing until it is used. */
export function createClient(options: ClientOptions = {}): Client {
  const settings = settingsOf(options);
  const { signedId, json } = { signedId: options.signedId, json: settings.json };
  const current = settings.cookie && signedId === undefined ? cookieIdentity(settings) : new ByHeader(signedId);
  const as = (identity: Identity) => new Sending(settings, identity);

  const bearer = async (): Promise<Own | undefined> => {
    const { apiKey } = settings;
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    return key ? { authorization: `Bearer ${key}` } : undefined;
  };
  const authorize = async (signedId: string | undefined, id: string): Promise<Own> => {
    const own = signedId ?? (id === current.id ? current.signedId : undefined);
    return (await bearer()) ?? (own ? { "x-thread-id": own } : {});
  };
  const service = as(new Service(async () => (await bearer()) ?? {}));
  const ownScopes = settings.apiKey ? service : as(current);
  const byId: ThreadById = (id, signedId, schema) =>
    new ThreadOf(as(new ById(id, authorize, signedId)), schema, byId);

  const client: Client = {
    current({ signedId, schema } = {}) {
      return new ThreadOf(as(signedId === undefined ? current : new ByHeader(signedId)), schema, byId);
    },

    thread(id, { schema } = {}) {
      return byId(id, undefined, schema);
    },

    async create(
      { state, ...init }: NewThread<any> = {},
      { schema, idempotencyKey: key, ...o }: WriteOptions & ThreadOptions<any> = {},
    ) {
      const members = Object.entries(snake(init)).map(([name, value]) => [name, JSON.stringify(value)]);
      const body = { ...Object.fromEntries(members), state: state && encode(json, state) };
      const answer = await service.json<object>({
        method: "POST",
        path: "/v1/threads",
        headers: { "idempotency-key": key ?? idempotencyKey() },
        body: objectText(body),
        options: o,
      });
      const { id, signedId } = threadInfo(answer.body);
      return byId(id, signedId ?? undefined, schema);
    },

    async threads({ owner, order, limit, cursor, metadata = {}, ...options }: ListOptions = {}) {
      const filters = Object.entries(metadata).map(([name, value]) => ["metadata." + name, value]);
      const { body } = await service.json<{ threads: object[]; next_cursor?: string | null }>({
        method: "GET",
        path: "/v1/threads",
        query: { owner, order, limit, cursor, ...Object.fromEntries(filters) },
        options,
      });
      return { threads: body.threads.map(threadInfo), ...(body.next_cursor ? { next: body.next_cursor } : {}) };
    },

    forRequest(request: IncomingRequest, { schema }: ThreadOptions<any> = {}): RequestThread<any> {
      const identity = new ByRequest(request, settings.cookieName);
      const thread = new ThreadOf(as(identity), schema, byId) as ThreadOf & RequestThread<any>;
      thread.responseHeaders = () => identity.responseHeaders();
      return thread;
    },

    scope: (name) => new ScopeOf(ownScopes, name),
    kv: (namespace) => new KeyValueOf(service, namespace),
    events: (o) => listenToAll(service, o),
  };
  keepInternals(client, { service });
  return client;
}

/** The client of an adapter's options. */
export function clientOf(source: ClientSource): Client {
  return "client" in source ? source.client : createClient(source);
}

function cookieIdentity(settings: Settings): ByCookie {
  const ask = async () => {
    const sender = { path: "/v1/threads/current", headers: {} };
    const { headers } = await attempt(settings, { method: "GET", path: sender.path }, sender, () => {});
    return headers.get("x-thread-id") ?? undefined;
  };
  return new ByCookie(ask, settings.baseUrl, settings.timeoutMs);
}
