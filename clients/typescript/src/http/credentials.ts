import type { ClientOptions } from "../types/options.js";

const NAMES = ["authorization", "cookie", "x-thread-id"];

/** Whether headers say who the caller is. */
export const hasCredential = (headers: Headers): boolean => NAMES.some((name) => headers.has(name));

/** Resolves the `headers` option for one request. */
export const headersOf = async (given: ClientOptions["headers"]): Promise<Headers> =>
  new Headers(typeof given === "function" ? await given() : given);

/** Returns the `headers` option without credentials. */
export const withoutCredentials = (given: ClientOptions["headers"]) => async (): Promise<Headers> => {
  const headers = await headersOf(given);
  for (const name of NAMES) headers.delete(name);
  return headers;
};
