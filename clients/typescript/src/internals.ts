import type { Sending } from "./http/send.js";
import type { Client } from "./types/client.js";

export interface Internals {
  /** Sends requests that do not belong to a single thread. Uses the API key if there is one. */
  readonly service: Sending;
}

const all = new WeakMap<Client, Internals>();

export function keepInternals(client: Client, internals: Internals): void {
  all.set(client, internals);
}

export function internalsOf(client: Client): Internals {
  const internals = all.get(client);
  if (!internals) throw new TypeError("The client is of another copy of threadkeep.");
  return internals;
}
