import type { Transport } from "./http/send.js";
import type { Client } from "./types/client.js";

export interface Internals {
  /** Sends requests that do not belong to a single thread. Uses the API key if there is one. */
  readonly service: Transport;
}

const internalsByClient = new WeakMap<Client, Internals>();

export function keepInternals(client: Client, internals: Internals): void {
  internalsByClient.set(client, internals);
}

export function internalsOf(client: Client): Internals {
  const internals = internalsByClient.get(client);
  if (!internals) throw new TypeError("The client belongs to another copy of threadkeep.");
  return internals;
}
