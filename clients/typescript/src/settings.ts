import { isPage, variable } from "./environment.js";
import { hasCredential } from "./http/credentials.js";
import type { JsonFormat } from "./types/json.js";
import type { ClientOptions } from "./types/options.js";

export interface Settings {
  baseUrl: string | undefined;
  apiKey: ClientOptions["apiKey"];
  token: ClientOptions["token"];
  /** API key from the environment, for requests without another credential. */
  environmentKey: string | undefined;
  cookie: boolean;
  cookieName: string;
  headers: ClientOptions["headers"];
  credentials: RequestCredentials | undefined;
  fetch: typeof fetch;
  timeoutMs: number;
  attempts: number;
  json: JsonFormat;
}

export function settingsOf(options: ClientOptions): Settings {
  if (options.apiKey && isPage) {
    throw new TypeError("An API key must not be in a page.");
  }
  if (options.apiKey && options.token) {
    throw new TypeError("Pass `apiKey` or `token`, not both.");
  }
  const { headers } = options;
  const hasCredentials =
    (options.apiKey ?? options.token ?? options.signedId) !== undefined ||
    (typeof headers === "object" && hasCredential(new Headers(headers)));
  const cookie = (options.identity ?? (isPage ? "cookie" : "header")) === "cookie";
  return {
    baseUrl: (options.baseUrl ?? (isPage ? "" : variable("THREADKEEP_URL")))?.toString().replace(/\/+$/, ""),
    apiKey: options.apiKey,
    token: options.token,
    environmentKey: isPage || hasCredentials ? undefined : variable("THREADKEEP_API_KEY"),
    cookie,
    cookieName: options.cookieName ?? "atid",
    headers,
    credentials: options.credentials ?? (cookie || isPage ? "same-origin" : undefined),
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs: options.timeoutMs ?? 10_000,
    attempts: Math.max(1, options.attempts ?? 4),
    json: options.json ?? JSON,
  };
}
