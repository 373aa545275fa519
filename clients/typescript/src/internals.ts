import type { Sending } from "./http/send.js";
import type { Client } from "./types/client.js";

/** The parts of a client that the other entry points use. */
export interface Internals {
  /** Requests about no single thread, with the API key if there is one. */
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
