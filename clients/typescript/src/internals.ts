import type { Transport } from "./http/send.js";
import type { Client } from "./types/client.js";

export interface Internals {
  /** Sends requests that do not belong to a single thread. Uses the client's API key if it is set. */
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
