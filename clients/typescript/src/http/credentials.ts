import type { ClientOptions } from "../types/options.js";

const NAMES = ["authorization", "cookie", "x-thread-id"];

export const hasCredential = (headers: Headers): boolean => NAMES.some((name) => headers.has(name));

export const headersOf = async (given: ClientOptions["headers"]): Promise<Headers> =>
  new Headers(typeof given === "function" ? await given() : given);

export const withoutCredentials = (given: ClientOptions["headers"]) => async (): Promise<Headers> => {
  const headers = await headersOf(given);
  for (const name of NAMES) headers.delete(name);
  return headers;
};
