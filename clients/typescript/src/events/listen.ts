import type { Sending } from "../http/send.js";
import type { EventOptions, ThreadEvent } from "../types/events.js";
import { connectAll, connectThread, learnId } from "./connect.js";
import { decode } from "./decode.js";
import { type Connect, follow, type Step } from "./follow.js";
import { closing } from "./iterator.js";

/** The events of a thread. */
export function listen(sending: Sending, { signal, values, ...o }: EventOptions = {}): AsyncIterableIterator<ThreadEvent> {
  const { settings, identity } = sending;
  return closing(signal, async function* (signal) {
    let connectKnown: Connect | undefined;
    const connect: Connect = async (cursor, signal) => {
      await learnId(sending, identity, signal);
      connectKnown ??= connectThread(sending, { values });
      return connectKnown(cursor, signal);
    };
    yield* decoded(follow(connect, { ...o, signal, timeoutMs: settings.timeoutMs }), sending);
  });
}

/** The events of all threads. */
export function listenToAll(
  sending: Sending,
  { signal, types, ...o }: Omit<EventOptions, "values"> & { types?: readonly string[] | undefined } = {},
): AsyncIterableIterator<ThreadEvent> {
  const connect = connectAll(sending, { type: types });
  return closing(signal, async function* (signal) {
    for await (const step of follow(connect, { ...o, signal, timeoutMs: sending.settings.timeoutMs })) {
      const event = decode(step, sending.settings.json);
      if (event) yield event;
    }
  });
}

/** The events in steps, up to the end of their thread: a stream belongs to one life. */
async function* decoded(steps: AsyncIterable<Step>, { settings }: Sending): AsyncGenerator<ThreadEvent, void> {
  for await (const step of steps) {
    const event = decode(step, settings.json);
    if (event) yield event;
    if (event?.type === "thread.destroyed" || event?.type === "thread.rotated") return;
  }
}
