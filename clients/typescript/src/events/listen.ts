import type { Sending } from "../http/send.js";
import { locks } from "../identity/lock.js";
import type { EventOptions, ThreadEvent } from "../types/events.js";
import { connectAll, connectThread } from "./connect.js";
import { decode } from "./decode.js";
import { follow, persist, type Step } from "./follow.js";
import { closing } from "./iterator.js";
import { share } from "./share.js";

export function listen(sending: Sending, { signal, values, ...o }: EventOptions = {}): AsyncIterableIterator<ThreadEvent> {
  const { settings, identity } = sending;
  return closing(signal, async function* (signal) {
    const learn = { method: "GET", path: (thread: string) => thread, options: { signal } };
    if (!identity.id) await persist(() => sending.json(learn), signal);
    const connect = connectThread(sending, { values });
    const following = { ...o, signal, timeoutMs: settings.timeoutMs };
    const name = `threadkeep ${settings.baseUrl} ${identity.id} ${values}`;
    const steps =
      locks && globalThis.BroadcastChannel && !o.lastEventId
        ? share(locks, name, connect, following)
        : follow(connect, following);
    yield* decoded(steps, sending, true);
  });
}

export function listenToAll(
  sending: Sending,
  { signal, types, ...o }: Omit<EventOptions, "values"> & { types?: readonly string[] | undefined } = {},
): AsyncIterableIterator<ThreadEvent> {
  const connect = connectAll(sending, { type: types });
  const { timeoutMs } = sending.settings;
  return closing(signal, (signal) => decoded(follow(connect, { ...o, signal, timeoutMs }), sending, false));
}

/** Decodes steps into events. The stream of a single thread ends when the thread ends. */
async function* decoded(
  steps: AsyncIterable<Step>,
  { settings }: Sending,
  isOfOneThread: boolean,
): AsyncGenerator<ThreadEvent, void> {
  for await (const step of steps) {
    const event = decode(step, settings.json);
    if (!event) continue;
    yield event;
    if (isOfOneThread && /destroyed|rotated/.test(event.type)) return;
  }
}
