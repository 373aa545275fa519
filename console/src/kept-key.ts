import { base } from "./api/request.js";

/** Other services may share the origin, and with it the storage. */
const NAME = `threadkeep-console-key ${base}`;

/** The API key that this tab keeps until it is closed. */
export function keptKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined; // the browser keeps nothing for this page
  }
}

/** Keeps the key through reloads of this tab, or with `undefined` forgets it. */
export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, key);
  } catch {
    // the memory of the page still has it
  }
}
