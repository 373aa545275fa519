import { base } from "./api/request.js";

/** Contains the service's URL, because services with the same origin share their session storage. */
const STORAGE_KEY = `threadkeep-console-key ${base}`;

export function storedKey(): string | undefined {
  try {
    return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
  } catch {
    return undefined; // storage is blocked
  }
}

/** Keeps the API key across reloads of this tab. `undefined` removes the key. */
export function storeKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(STORAGE_KEY);
    else sessionStorage.setItem(STORAGE_KEY, key);
  } catch {
  }
}
