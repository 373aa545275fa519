interface Platform {
  document?: unknown;
  process?: { env?: { [name: string]: string | undefined } };
  navigator?: { userAgent?: string };
}

const platform = globalThis as Platform;

export const isPage: boolean = typeof platform.document === "object";

/** True if `fetch` accepts the option `cache`. Older Cloudflare Workers throw an error if it is set. */
export const supportsCacheOption: boolean = platform.navigator?.userAgent !== "Cloudflare-Workers";

export function variable(name: string): string | undefined {
  try {
    return platform.process?.env?.[name] || undefined;
  } catch {
    return undefined; // Deno without permission to read the environment
  }
}
