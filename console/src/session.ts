import { computed, effect, signal } from "@preact/signals";
import { Problem, asProblem } from "./api/problem.js";
import { base, call, callJson, keyRejection, setApiKey } from "./api/request.js";
import type { ApiKey, ServerInfo } from "./api/types.js";
import { replace } from "./route.js";
import { storeKey, storedKey } from "./stored-key.js";

/** The accepted API key, without its secret. */
export const session = signal<ApiKey | undefined>(undefined);

export const isKept = signal(false);

export const sessionProblem = signal<Problem | undefined>(undefined);

export const server = signal<ServerInfo | undefined>(undefined);

const rights = computed(() => new Set(session.value?.rights));

/** Returns whether the key has a right. For display only, because the service itself enforces rights. */
export function can(right: string): boolean {
  const granted = rights.value;
  return granted.has("all") || granted.has(right) || (right === "threads.read" && granted.has("threads"));
}

effect(() => {
  const problem = keyRejection.value;
  if (problem) close(problem);
});

export function close(problem?: Problem): void {
  setApiKey(undefined);
  // a short outage must not remove a kept key
  if (!problem || problem.status === 401) storeKey(undefined);
  isKept.value = false;
  keyRejection.value = undefined;
  session.value = undefined;
  sessionProblem.value = problem;
}

/** Uses an API key if the service accepts the key. With `shouldKeep`, keeps the key until the tab is closed. */
export async function open(apiKey: string, shouldKeep = false): Promise<void> {
  sessionProblem.value = undefined;
  setApiKey(apiKey);
  try {
    session.value = await callJson<ApiKey>("/v1/api-keys/current");
    storeKey(shouldKeep ? apiKey : undefined);
    isKept.value = shouldKeep;
  } catch (error) {
    close(asProblem(error));
  }
}

/** Opens the console with the one-time link in the address, or else with the key that this tab keeps. */
export async function openAtStart(): Promise<void> {
  const [, token] = /^#once=([0-9a-f]{64})$/.exec(location.hash) ?? [];
  const key = storedKey();
  if (token) await openByLink(token);
  else if (key) await open(key, true);
}

/** Removes the token of a one-time link from the URL, then exchanges the token for an API key. */
async function openByLink(token: string): Promise<void> {
  replace("#/");
  try {
    const { text } = await call("/console/session", { method: "POST", headers: { authorization: `Bearer ${token}` } });
    await open((JSON.parse(text) as { api_key: string }).api_key);
  } catch (error) {
    const problem = asProblem(error);
    const isUsed = problem.status === 401;
    close(isUsed ? new Problem(401, problem.code, "This link was used already, or comes from an earlier run. Use the link that the server printed last.") : problem);
  }
}

/** Reads the service's name and version. Failures are ignored, because the console works without them. */
export async function loadServerInfo(): Promise<void> {
  try {
    server.value = await callJson<ServerInfo>("/", { headers: { accept: "application/json" } });
  } catch {
    server.value = undefined;
  }
}

export const docs = base + "/docs/";
