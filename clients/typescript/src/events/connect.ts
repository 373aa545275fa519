import { idOf, type Sender } from "../identity/identity.js";
import { prepare } from "../http/prepare.js";
import type { Query } from "../http/request.js";
import type { Transport } from "../http/send.js";
import { connectionError } from "../http/attempt.js";
import type { Connect } from "./follow.js";

export const connectAll =
  ({ settings, identity }: Transport, query: Query): Connect =>
  async (cursor, signal) =>
    receive(settings, await identity.sender(), "/v1/events", query, cursor, signal);

/** Connects to the events of the identity's current thread, and keeps that thread if the identity later switches. */
export function connectThread({ settings, identity }: Transport, query: Query): Connect {
  const { id, signedId } = identity;
  return async (cursor, signal) => {
    (await identity.enter(signal))(); // throws if the cookie is lost
    const sender = await identity.sender();
    if (identity.id === id) {
      const response = await receive(settings, sender, sender.path + "/events", query, cursor, signal);
      const named = response.headers.get("x-thread-id");
      if (!named || idOf(named) === id) {
        await identity.handleResponse(sender, response.headers, false);
        return response;
      }
      // the cookie now names a different thread
      response.body?.cancel().catch(() => {});
    }
    const headers = signedId ? { ...sender.headers, "x-thread-id": signedId } : sender.headers;
    return receive(settings, { ...sender, headers }, `/v1/threads/${id}/events`, query, cursor, signal);
  };
}

async function receive(
  settings: Transport["settings"],
  sender: Sender,
  path: string,
  query: Query,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const headers = { accept: "text/event-stream", "last-event-id": cursor };
  const [url, init] = await prepare(settings, { method: "GET", path, query, headers }, sender);
  try {
    return await settings.fetch(url, { ...init, signal });
  } catch (error) {
    throw connectionError(error);
  }
}
