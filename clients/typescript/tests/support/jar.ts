/** Returns a `fetch` with a cookie jar. With `isBlocked`, does not send the cookies to the server. */
export function jar({ isBlocked = false } = {}): { fetch: typeof fetch; cookies: Map<string, string> } {
  const cookies = new Map<string, string>();
  return {
    cookies,
    async fetch(input, init) {
      const headers = new Headers(init?.headers);
      const sent = [...cookies].map((pair) => pair.join("=")).join("; ");
      if (sent && !isBlocked) headers.set("cookie", sent);
      const response = await fetch(input, { ...init, headers });
      for (const cookie of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
        cookies.set(name!, value!);
      }
      return response;
    },
  };
}
