import { elementsOf, membersOf } from "../json/text.js";
import { asProblem } from "./problem.js";
import { type Call, call } from "./request.js";

/** Paths of keys, and the two keys that no path can carry. */
const isInNoPath = (key: string) => key === "." || key === "..";

export const keyPath = (id: string, key: string) => `/v1/threads/${id}/state/${encodeURIComponent(key)}`;

type Options = Pick<Call, "headers">;

const merge = (id: string, operation: string, options: Options) =>
  call(`/v1/threads/${id}/state`, { ...options, method: "PATCH", body: `{"operations":[${operation}]}` });

/** Sets a key to a value, which is JSON text. */
export function setKey(id: string, key: string, value: string, options: Options = {}) {
  if (isInNoPath(key)) return merge(id, `{"op":"set","key":${JSON.stringify(key)},"value":${value}}`, options);
  return call(keyPath(id, key), { ...options, method: "PUT", body: value });
}

export function deleteKey(id: string, key: string, options: Options = {}) {
  if (isInNoPath(key)) return merge(id, `{"op":"delete","key":${JSON.stringify(key)}}`, options);
  return call(keyPath(id, key), { ...options, method: "DELETE" });
}

export function pushValue(id: string, key: string, value: string, options: Options = {}) {
  if (isInNoPath(key)) return merge(id, `{"op":"push","key":${JSON.stringify(key)},"value":${value}}`, options);
  return call(`${keyPath(id, key)}/push`, { ...options, method: "POST", body: value });
}

/** The whole state, by its keys, without extending the thread's life. */
export async function peekState(id: string, signal: AbortSignal): Promise<Map<string, string>> {
  return membersOf((await call(`/v1/threads/${id}/state`, { query: { peek: true }, signal })).text);
}

/** The newest elements of an array in the state, without extending the thread's life. */
export async function peekTail(id: string, key: string, tail: number, signal: AbortSignal): Promise<string[]> {
  return elementsOf((await call(keyPath(id, key), { query: { tail, peek: true }, signal })).text);
}

/** Times that other writes of the thread may come between. */
const TRIES = 5;

/**
 * Sets a key that has a value, or none, and returns undefined; or changes nothing, and returns the value that the key has instead.
 * Writes are conditional on the version of the thread, so this reads the key again after another write.
 */
export async function setKeyFrom(id: string, key: string, before: string | undefined, value: string): Promise<{ value: string | undefined } | undefined> {
  for (let tries = 1; ; tries++) {
    const { text, headers } = await call(`/v1/threads/${id}/state`, { query: { key: [key] } });
    const found = membersOf(text).get(key);
    if (found !== before) return { value: found };
    try {
      await setKey(id, key, value, { headers: { "if-match": `"${versionOf(headers)}"` } });
      return undefined;
    } catch (error) {
      if (asProblem(error).code !== "version_mismatch" || tries === TRIES) throw error;
    }
  }
}

/** The version of a thread in the tag of an answer. */
export function versionOf(headers: Headers): number {
  return Number(/^"(\d+)[-"]/.exec(headers.get("etag") ?? "")?.[1] ?? 0);
}
