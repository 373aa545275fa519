interface Platform {
  document?: unknown;
  process?: { env?: { [name: string]: string | undefined } };
  navigator?: { userAgent?: string };
}

const platform = globalThis as Platform;

/** Whether this is a page in a browser. */
export const isPage: boolean = typeof platform.document === "object";

/** Whether `fetch` knows the option `cache`: in Cloudflare's older workers, it throws. */
export const knowsCache: boolean = platform.navigator?.userAgent !== "Cloudflare-Workers";

/** An environment variable, where there are such things. */
export function variable(name: string): string | undefined {
  try {
    return platform.process?.env?.[name] || undefined;
  } catch {
    return undefined; // Deno without the permission
  }
}
