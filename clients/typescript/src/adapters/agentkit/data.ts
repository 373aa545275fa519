import type { State } from "@inngest/agent-kit";
import type { Operation } from "../../types/operation.js";

export function textsOf(state: State<any>): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [space, values] of Object.entries({ data: state.data as object, kv: state.kv.all() })) {
    for (const [name, value] of Object.entries(values)) {
      const text = JSON.stringify(value) as string | undefined;
      if (text !== undefined) texts.set(`${space}.${name}`, text);
    }
  }
  return texts;
}

export function initialState(state: State<any>): { [key: string]: unknown } {
  const texts = [...textsOf(state)].filter(([key]) => key.startsWith("data."));
  return Object.fromEntries(texts.map(([key, text]) => [key, JSON.parse(text)]));
}

export function fill(state: State<any>, stored: { [key: string]: unknown }): void {
  for (const [key, value] of Object.entries(stored)) {
    if (key.startsWith("data.")) state.data[key.slice(5)] = value;
    else if (key.startsWith("kv.")) state.kv.set(key.slice(3), value);
  }
}

/** Returns operations that store only the values that a run changed, so that they do not undo changes by other runs. */
export function changes(before: Map<string, string>, after: Map<string, string>): Operation[] {
  const changed = [...after].filter(([key, text]) => before.get(key) !== text);
  const removed = [...before.keys()].filter((key) => !after.has(key));
  return [
    ...changed.map(([key, text]) => ({ op: "set", key, value: JSON.parse(text) }) as const),
    ...removed.map((key) => ({ op: "delete", key }) as const),
  ];
}
