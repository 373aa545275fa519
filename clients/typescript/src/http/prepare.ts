import { definedEntries } from "../defined.js";
import { supportsCacheOption } from "../environment.js";
import type { Sender } from "../identity/identity.js";
import type { Settings } from "../settings.js";
import { hasCredential, headersOf } from "./credentials.js";
import { queryText, type ServerRequest } from "./request.js";

export async function prepare(
  settings: Settings,
  { method, path, query, body, contentType = "application/json", headers: more }: ServerRequest,
  sender: Sender,
): Promise<[url: string, init: RequestInit]> {
  const { baseUrl, headers: given, credentials, token, environmentKey } = settings;
  if (baseUrl === undefined) throw new TypeError("Pass `baseUrl`, or set THREADKEEP_URL.");
  const headers = await headersOf(given);
  const key = sender.mayUseEnvironment && !hasCredential(headers) && environmentKey;
  const bearer = key || (typeof token === "function" ? await token() : token);
  const own = {
    "content-type": body === undefined ? body : contentType,
    authorization: bearer ? `Bearer ${bearer}` : undefined,
    ...more,
    ...sender.headers,
  };
  for (const [name, value] of definedEntries(own)) {
    try {
      headers.set(name, value);
    } catch {
      // the platform's error would reveal the value
      throw new TypeError(`The header ${name} cannot carry this value.`);
    }
  }
  return [
    baseUrl + (typeof path === "string" ? path : path(sender.path)) + queryText(query),
    // `fetch` ignores undefined options
    { method, headers, body, credentials, cache: supportsCacheOption ? "no-store" : undefined } as RequestInit,
  ];
}
