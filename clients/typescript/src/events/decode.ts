import { camel } from "../http/camel.js";
import type { JsonFormat } from "../types/json.js";
import type { ThreadEvent } from "../types/events.js";
import type { Step } from "./follow.js";

export function decode({ type, data, cursor }: Step, json: JsonFormat): ThreadEvent | undefined {
  if (type === "reset") return { type, cursor };
  if (!/^(thread\.(created|updated|destroyed|rotated)|history\.appended)$/.test(type)) return undefined;
  const { time, data: own } = JSON.parse(data) as { time: string; data: object };
  const { threadId, version, ...rest } = camel<any>(own);
  if (rest.values && json !== JSON) rest.values = (json.parse(data) as any).data.values;
  const event = { type, cursor, threadId, version, time };
  return (type === "thread.destroyed" ? { ...event, data: rest } : { ...event, ...rest }) as ThreadEvent;
}
