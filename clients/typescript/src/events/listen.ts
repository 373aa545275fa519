import type { Transport } from "../http/send.js";
import { locks } from "../identity/lock.js";
import type { EventOptions, ThreadEvent } from "../types/events.js";
import { connectAll, connectThread } from "./connect.js";
import { decode } from "./decode.js";
import { follow, persist, type Step } from "./follow.js";
import { closing } from "./iterator.js";
import { share } from "./share.js";

export function listen(transport: Transport, { signal, values, ...o }: EventOptions = {}): AsyncIterableIterator<ThreadEvent> {
  const { settings, identity } = transport;
  return closing(signal, async function* (signal) {
    const idRequest = { method: "GET", path: (thread: string) => thread, options: { signal } };
    if (!identity.id) await persist(() => transport.json(idRequest), signal);
    const connect = connectThread(transport, { values });
    const followOptions = { ...o, signal, timeoutMs: settings.timeoutMs };
    const name = `threadkeep ${settings.baseUrl} ${identity.id} ${values}`;
    const steps =
      locks && globalThis.BroadcastChannel && !o.lastEventId
        ? share(locks, name, connect, followOptions)
        : follow(connect, followOptions);
    yield* decoded(steps, transport, true);
  });
}

export function listenToAll(
  transport: Transport,
  { signal, types, ...o }: Omit<EventOptions, "values"> & { types?: readonly string[] | undefined } = {},
): AsyncIterableIterator<ThreadEvent> {
  const connect = connectAll(transport, { type: types });
  const { timeoutMs } = transport.settings;
  return closing(signal, (signal) => decoded(follow(connect, { ...o, signal, timeoutMs }), transport, false));
}

/** Decodes steps into events. The stream of a single thread ends when the thread ends. */
async function* decoded(
  steps: AsyncIterable<Step>,
  { settings }: Transport,
  isSingleThread: boolean,
): AsyncGenerator<ThreadEvent, void> {
  for await (const step of steps) {
    const event = decode(step, settings.json);
    if (!event) continue;
    yield event;
    if (isSingleThread && /destroyed|rotated/.test(event.type)) return;
  }
}
