import { signal } from "@preact/signals";
import { Problem, problemOf } from "./problem.js";

/** The API key. It is here and, unless the user asks to keep it, nowhere else: a tab that is loaded again has forgotten it. */
let apiKey: string | undefined;

export function useKey(key: string | undefined): void {
  apiKey = key;
}

/** Whether the last request reached the service. */
export const isReachable = signal(true);

/** The answer that the API key in use is unknown, as after a restart with other settings. */
export const refusal = signal<Problem | undefined>(undefined);

/** Counts the times that the service was there again after it was not. Pages load again when it changes. */
export const returns = signal(0);

/** Where the service is, for a page at `/console/` behind any prefix. */
export const base = new URL("..", document.baseURI).href.replace(/\/$/, "");

const TIMEOUT_MS = 20_000;
const RETRY_MS = 1_000;

export interface Call {
  method?: string;
  /** JSON text. */
  body?: string | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  query?: Record<string, string | number | boolean | string[] | undefined>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** The headers of the caller. */
export function identity(): Record<string, string> {
  return apiKey ? { authorization: `Bearer ${apiKey}` } : {};
}

export function urlOf(path: string, query: Call["query"] = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined || value === "") return [];
    return (Array.isArray(value) ? value : [String(value)]).map((one) => `${name}=${encodeURIComponent(one)}`);
  });
  return base + path + (pairs.length ? "?" + pairs.join("&") : "");
}

/** Calls the service. Throws a `Problem` for every answer that is not a success. */
export async function call(path: string, { method = "GET", body, headers, signal, query }: Call = {}): Promise<Answer> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const init: RequestInit = {
    method,
    headers: { ...identity(), ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    // neither the cookie of a page's thread, nor a copy
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
    lost();
    throw new Problem(0, "unreachable", "The service does not answer. The console tries again until it does.");
  }
  if (!response.ok) {
    const problem = problemOf(response.status, text);
    if (problem.code === "invalid_api_key" && apiKey && !headers?.["authorization"]) refusal.value = problem;
    throw problem;
  }
  return { status: response.status, headers: response.headers, text };
}

/** Calls the service, and reads the answer as JSON. For objects of the service's own, not for values of clients. */
export async function callJson<T>(path: string, options?: Call): Promise<T> {
  return JSON.parse((await call(path, options)).text) as T;
}

/** Notes that the service does not answer, and asks until it does. */
export function lost(): void {
  if (!isReachable.value) return;
  isReachable.value = false;
  const ask = async () => {
    try {
      const response = await fetch(base + "/healthz", { credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(5_000) });
      if (response.ok) {
        isReachable.value = true;
        returns.value++;
        return;
      }
    } catch {
      // still away
    }
    setTimeout(ask, RETRY_MS);
  };
  setTimeout(ask, RETRY_MS);
}
