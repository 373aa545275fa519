import { checkDefined } from "./defined.js";
import { listenToAll } from "./events/listen.js";
import { attempt } from "./http/attempt.js";
import { withoutCredentials } from "./http/credentials.js";
import { sendingOf } from "./http/send.js";
import { ByCookie } from "./identity/by-cookie.js";
import { ByHeader } from "./identity/by-header.js";
import { ById, Service } from "./identity/by-id.js";
import { ByOwner } from "./identity/by-owner.js";
import { ByRequest } from "./identity/by-request.js";
import type { Identity } from "./identity/identity.js";
import { keepInternals } from "./internals.js";
import { keyValueOf } from "./kv/key-value.js";
import { scopeOf } from "./scope.js";
import { type Settings, settingsOf } from "./settings.js";
import { claim } from "./thread/claim.js";
import { type ThreadById, threadOf } from "./thread/thread.js";
import { threadsOf } from "./threads.js";
import type { Client } from "./types/client.js";
import type { ClientOptions, ClientSource } from "./types/options.js";
import type { RequestThread, Thread } from "./types/thread.js";

type Own = { [name: string]: string };

function threadsBy(settings: Settings, authorize: (own: string | undefined, id: string) => Promise<Own>): ThreadById {
  const byId: ThreadById = (id, signedId, schema) => threadOf(sendingOf(settings, new ById(id, authorize, signedId)), schema, byId);
  return byId;
}

/** Creates a client. Sends no request. */
export function createClient(options: ClientOptions = {}): Client {
  const settings = settingsOf(options);
  const { signedId } = options;
  const current = settings.cookie && signedId === undefined ? cookieIdentity(settings) : new ByHeader(signedId);
  const as = (identity: Identity) => sendingOf(settings, identity);

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
  const ownScopes = settings.apiKey || settings.environmentKey ? service : as(current);
  const byId = threadsBy(settings, authorize);

  const client: Client = {
    current(o = {}) {
      checkDefined(o, "signedId");
      const { signedId, schema } = o;
      return threadOf(as(signedId === undefined ? current : new ByHeader(signedId)), schema, byId) as Thread<any>;
    },

    thread(id, o = {}) {
      checkDefined(o, "owner");
      const { owner, schema, ttlSeconds } = o;
      if (owner === undefined) return byId(id, undefined, schema) as Thread<any>;
      const check = (ofWrite?: number) => claim(as(new ById(id, authorize)), id, owner, ttlSeconds ?? ofWrite);
      return threadOf(as(new ByOwner(id, authorize, check)), schema, byId) as Thread<any>;
    },

    threads: threadsOf(service, byId),

    forRequest(request, { schema } = {}) {
      const identity = new ByRequest(request, settings.cookieName);
      const responseHeaders = () => identity.responseHeaders();
      // a user's request must not carry the back end's credentials
      const users: Settings = {
        ...settings,
        headers: withoutCredentials(settings.headers),
        token: undefined,
        environmentKey: undefined,
      };
      const authorizeUser = async (own: string | undefined): Promise<Own> => ({
        ...(own ? { "x-thread-id": own } : {}),
        ...identity.login,
      });
      const usersById = threadsBy(users, authorizeUser);
      const thread = threadOf(sendingOf(users, identity), schema, usersById);
      return Object.assign(thread, { responseHeaders }) as RequestThread<any>;
    },

    scope: (name) => scopeOf(ownScopes, name),
    kv: (namespace) => keyValueOf(service, namespace),
    events: (o) => listenToAll(service, o),
  };
  keepInternals(client, { service });
  return client;
}

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
