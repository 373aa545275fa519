interface Platform {
  document?: unknown;
  process?: { env?: { [name: string]: string | undefined } };
  navigator?: { userAgent?: string };
}

const platform = globalThis as Platform;

export const isPage: boolean = typeof platform.document === "object";

/** Whether `fetch` accepts the option `cache`. In older Cloudflare Workers, the option throws. */
export const supportsCacheOption: boolean = platform.navigator?.userAgent !== "Cloudflare-Workers";

export function variable(name: string): string | undefined {
  try {
    return platform.process?.env?.[name] || undefined;
  } catch {
    return undefined; // Deno without permission to read the environment
  }
}
