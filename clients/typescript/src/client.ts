import { checkDefined } from "./defined.js";
import { listenToAll } from "./events/listen.js";
import { attempt } from "./http/attempt.js";
import { withoutCredentials } from "./http/credentials.js";
import { transportOf } from "./http/send.js";
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

type AuthHeaders = { [name: string]: string };

function threadsBy(settings: Settings, authorize: (signedId: string | undefined, id: string) => Promise<AuthHeaders>): ThreadById {
  const byId: ThreadById = (id, signedId, schema) => threadOf(transportOf(settings, new ById(id, authorize, signedId)), schema, byId);
  return byId;
}

/** Creates a client. Sends no request. */
export function createClient(options: ClientOptions = {}): Client {
  const settings = settingsOf(options);
  const { signedId } = options;
  const current = settings.cookie && signedId === undefined ? cookieIdentity(settings) : new ByHeader(signedId);
  const transportFor = (identity: Identity) => transportOf(settings, identity);

  const bearer = async (): Promise<AuthHeaders | undefined> => {
    const { apiKey } = settings;
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    return key ? { authorization: `Bearer ${key}` } : undefined;
  };
  const authorize = async (signedId: string | undefined, id: string): Promise<AuthHeaders> => {
    const known = signedId ?? (id === current.id ? current.signedId : undefined);
    return (await bearer()) ?? (known ? { "x-thread-id": known } : {});
  };
  const service = transportFor(new Service(async () => (await bearer()) ?? {}));
  const ownScopes = settings.apiKey || settings.environmentKey ? service : transportFor(current);
  const byId = threadsBy(settings, authorize);

  const client: Client = {
    current(o = {}) {
      checkDefined(o, "signedId");
      const { signedId, schema } = o;
      return threadOf(transportFor(signedId === undefined ? current : new ByHeader(signedId)), schema, byId) as Thread<any>;
    },

    thread(id, o = {}) {
      checkDefined(o, "owner");
      const { owner, schema, ttlSeconds } = o;
      if (owner === undefined) return byId(id, undefined, schema) as Thread<any>;
      const check = (writeTtlSeconds?: number) => claim(transportFor(new ById(id, authorize)), id, owner, ttlSeconds ?? writeTtlSeconds);
      return threadOf(transportFor(new ByOwner(id, authorize, check)), schema, byId) as Thread<any>;
    },

    threads: threadsOf(service, byId),

    forRequest(request, { schema } = {}) {
      const identity = new ByRequest(request, settings.cookieName);
      const responseHeaders = () => identity.responseHeaders();
      // a user's request must not carry the back end's credentials
      const userSettings: Settings = {
        ...settings,
        headers: withoutCredentials(settings.headers),
        token: undefined,
        environmentKey: undefined,
      };
      const authorizeUser = async (signedId: string | undefined): Promise<AuthHeaders> => ({
        ...(signedId ? { "x-thread-id": signedId } : {}),
        ...identity.login,
      });
      const userThreadById = threadsBy(userSettings, authorizeUser);
      const thread = threadOf(transportOf(userSettings, identity), schema, userThreadById);
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
  const fetchSignedId = async () => {
    const sender = { path: "/v1/threads/current", headers: {} };
    const { headers } = await attempt(settings, { method: "GET", path: sender.path }, sender, () => {});
    return headers.get("x-thread-id") ?? undefined;
  };
  return new ByCookie(fetchSignedId, settings.baseUrl, settings.timeoutMs);
}
