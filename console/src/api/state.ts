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
