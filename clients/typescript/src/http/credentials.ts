/** Whether headers say who the caller is. */
export const hasCredential = (headers: Headers): boolean =>
  ["authorization", "cookie", "x-thread-id"].some((name) => headers.has(name));
