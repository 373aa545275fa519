/** Whether a server knows a path of the API: this package may be newer than a server. */
export async function serverHas(baseUrl: string, path: string): Promise<boolean> {
  const { paths } = (await (await fetch(baseUrl + "/openapi.json")).json()) as { paths: object };
  return path in paths;
}
