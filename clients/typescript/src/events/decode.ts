import { camel } from "../http/camel.js";
import type { JsonFormat } from "../types/json.js";
import type { ThreadEvent } from "../types/events.js";
import type { Step } from "./follow.js";

/** The event in a step of a stream, if this client knows its type. */
export function decode({ type, data, cursor }: Step, json: JsonFormat): ThreadEvent | undefined {
  if (type === "reset") return { type, cursor };
  if (!/^(thread\.(created|updated|destroyed|rotated)|history\.appended)$/.test(type)) return undefined;
  const event = json.parse(data) as { time: string; data: object };
  const { threadId, version, sequence: _, life: __, ...rest } = camel<any>(event.data);
  const common = { type, cursor, threadId, time: event.time };
  const versioned = { ...common, version: Number(version) };
  switch (type) {
    case "thread.destroyed":
      return { ...versioned, data: rest } as ThreadEvent;
    case "thread.rotated":
      return { ...common, newThreadId: rest.newThreadId } as ThreadEvent;
    case "history.appended":
      return { ...common, firstSeq: Number(rest.firstSeq), lastSeq: Number(rest.lastSeq) } as ThreadEvent;
    default:
      return { ...versioned, keys: [], ...rest } as ThreadEvent;
  }
}
