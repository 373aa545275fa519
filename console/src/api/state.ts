import { elementsOf, membersOf } from "../json/text.js";
import { asProblem } from "./problem.js";
import { type Call, call } from "./request.js";

const isUnsafeInPath = (key: string) => key === "." || key === "..";

export const keyPath = (id: string, key: string) => `/v1/threads/${id}/state/${encodeURIComponent(key)}`;

type Options = Pick<Call, "headers">;

const merge = (id: string, operation: string, options: Options) =>
  call(`/v1/threads/${id}/state`, { ...options, method: "PATCH", body: `{"operations":[${operation}]}` });

export function setKey(id: string, key: string, value: string, options: Options = {}) {
  if (isUnsafeInPath(key)) return merge(id, `{"op":"set","key":${JSON.stringify(key)},"value":${value}}`, options);
  return call(keyPath(id, key), { ...options, method: "PUT", body: value });
}

export function deleteKey(id: string, key: string, options: Options = {}) {
  if (isUnsafeInPath(key)) return merge(id, `{"op":"delete","key":${JSON.stringify(key)}}`, options);
  return call(keyPath(id, key), { ...options, method: "DELETE" });
}

export function pushValue(id: string, key: string, value: string, options: Options = {}) {
  if (isUnsafeInPath(key)) return merge(id, `{"op":"push","key":${JSON.stringify(key)},"value":${value}}`, options);
  return call(`${keyPath(id, key)}/push`, { ...options, method: "POST", body: value });
}

/** Reads the whole state by key, without extending the thread's lifetime. */
export async function peekState(id: string, signal: AbortSignal): Promise<Map<string, string>> {
  return membersOf((await call(`/v1/threads/${id}/state`, { query: { peek: true }, signal })).text);
}

/** Reads the newest elements of an array, without extending the thread's lifetime. */
export async function peekTail(id: string, key: string, tail: number, signal: AbortSignal): Promise<string[]> {
  return elementsOf((await call(keyPath(id, key), { query: { tail, peek: true }, signal })).text);
}

const ATTEMPTS_MAX = 5;

/**
 * Sets a key if its value is `before`, or if the key is absent and `before` is undefined. Otherwise changes nothing and
 * returns the current value. The write is conditional on the thread's version. If another write changed the version,
 * reads the key again and retries.
 */
export async function compareAndSetKey(id: string, key: string, before: string | undefined, value: string): Promise<{ value: string | undefined } | undefined> {
  for (let tries = 1; ; tries++) {
    const { text, headers } = await call(`/v1/threads/${id}/state`, { query: { key: [key] } });
    const current = membersOf(text).get(key);
    if (current !== before) return { value: current };
    try {
      await setKey(id, key, value, { headers: { "if-match": `"${versionOf(headers)}"` } });
      return undefined;
    } catch (error) {
      if (asProblem(error).code !== "version_mismatch" || tries === ATTEMPTS_MAX) throw error;
    }
  }
}

export function versionOf(headers: Headers): number {
  return Number(/^"(\d+)[-"]/.exec(headers.get("etag") ?? "")?.[1] ?? 0);
}
