import { signal } from "@preact/signals";
import { Problem, problemOf } from "./problem.js";

/** The API key, in the page's memory. A reload of the tab discards the key, unless the user chose to keep it. */
let apiKey: string | undefined;

export function setApiKey(key: string | undefined): void {
  apiKey = key;
}

export const isReachable = signal(true);

/** The 401 response that rejected the API key in use, for example after a restart with different settings. */
export const keyRejection = signal<Problem | undefined>(undefined);

/** How often the service has recovered from an outage. Pages reload when this count changes. */
export const recoveries = signal(0);

/** URL of the service. A proxy may add a path prefix before `/console/`. */
export const base = new URL("..", document.baseURI).href.replace(/\/$/, "");

const TIMEOUT_MS = 20_000;
const RETRY_MS = 1_000;

export interface Call {
  method?: string;
  body?: string | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  query?: Record<string, string | number | boolean | string[] | undefined>;
}

export interface ServiceResponse {
  status: number;
  headers: Headers;
  text: string;
}

export function authHeaders(): Record<string, string> {
  return apiKey ? { authorization: `Bearer ${apiKey}` } : {};
}

export function urlOf(path: string, query: Call["query"] = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined || value === "") return [];
    return (Array.isArray(value) ? value : [String(value)]).map((one) => `${name}=${encodeURIComponent(one)}`);
  });
  return base + path + (pairs.length ? "?" + pairs.join("&") : "");
}

/** Calls the service. Throws a `Problem` for every unsuccessful response. */
export async function call(path: string, { method = "GET", body, headers, signal, query }: Call = {}): Promise<ServiceResponse> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const init: RequestInit = {
    method,
    headers: { ...authHeaders(), ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    // sends no cookie, because a cookie could identify another page's thread; bypasses the browser's cache
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  };
  if (body !== undefined) init.body = body;
  let response: Response;
  let text: string;
  try {
    response = await fetch(urlOf(path, query), init);
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    reportUnreachable();
    throw new Problem(0, "unreachable", "The service does not answer. The console retries until it does.");
  }
  if (!response.ok) {
    const problem = problemOf(response.status, text);
    if (problem.code === "invalid_api_key" && apiKey && !headers?.["authorization"]) keyRejection.value = problem;
    throw problem;
  }
  return { status: response.status, headers: response.headers, text };
}

/** Parses the response as JSON. Not for values that clients stored, because parsing would round large numbers. */
export async function callJson<T>(path: string, options?: Call): Promise<T> {
  return JSON.parse((await call(path, options)).text) as T;
}

/** Records that the service is unreachable, and polls until it responds. */
export function reportUnreachable(): void {
  if (!isReachable.value) return;
  isReachable.value = false;
  const poll = async () => {
    try {
      const response = await fetch(base + "/healthz", { credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(5_000) });
      if (response.ok) {
        isReachable.value = true;
        recoveries.value++;
        return;
      }
    } catch {
    }
    setTimeout(poll, RETRY_MS);
  };
  setTimeout(poll, RETRY_MS);
}
