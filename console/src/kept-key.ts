import { base } from "./api/request.js";

/** Includes the URL, because other services may share the origin and its storage. */
const NAME = `threadkeep-console-key ${base}`;

export function keptKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined; // storage is blocked
  }
}

/** Keeps the key across reloads of this tab; `undefined` removes it. */
export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, key);
  } catch {
  }
}
