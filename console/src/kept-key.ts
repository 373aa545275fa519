import { base } from "./api/request.js";

/** Storage key. Includes the URL, because several services may share an origin and its storage. */
const NAME = `threadkeep-console-key ${base}`;

export function keptKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined; // storage is blocked
  }
}

/** Keeps the API key across reloads of this tab. `undefined` removes the key. */
export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, key);
  } catch {
  }
}
