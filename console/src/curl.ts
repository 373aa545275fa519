import { base } from "./api/request.js";

export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Builds a curl command. The command contains the shell variable `$API_KEY`, but never the key itself. */
export function curl(
  method: string,
  path: string,
  { body, file, headers = ["authorization: Bearer $API_KEY"] }: { body?: string; file?: string; headers?: string[] } = {},
): string {
  const parts = ["curl", "-s"];
  if (method !== "GET" && !(method === "POST" && body)) parts.push("-X", method);
  const all = headers.some((header) => /^(authorization|x-thread-id):/.test(header)) ? headers : ["authorization: Bearer $API_KEY", ...headers];
  // the shell expands variables only in double quotes
  for (const header of all) parts.push("-H", header.includes("$API_KEY") ? `"${header}"` : quoted(header));
  if (body || file) parts.push("-H", quoted("content-type: application/json"));
  if (body) parts.push("-d", quoted(body));
  if (file) parts.push("--data-binary", quoted("@" + file));
  return [...parts, quoted(base + path)].join(" ");
}
