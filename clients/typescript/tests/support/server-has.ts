/** Returns whether a server supports a path, because this package may be newer than the server. */
export async function serverHas(baseUrl: string, path: string): Promise<boolean> {
  const { paths } = (await (await fetch(baseUrl + "/openapi.json")).json()) as { paths: object };
  return path in paths;
}
