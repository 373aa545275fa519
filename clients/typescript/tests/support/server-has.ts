/** Returns whether the server supports `path`, because the server may be older than this package. */
export async function serverHas(baseUrl: string, path: string): Promise<boolean> {
  const { paths } = (await (await fetch(baseUrl + "/openapi.json")).json()) as { paths: object };
  return path in paths;
}
