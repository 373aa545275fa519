import type { Operation } from "../types/operation.js";

type State = { [key: string]: any };

/** Applies an operation to a copy of `state`. Ignores an operation that the server would reject. */
export function apply(state: State, operation: Operation): State {
  if (operation.op === "clear") return {};
  if (operation.op === "append" || operation.op === "settle") return state;
  const { key } = operation;
  const old = Object.hasOwn(state, key) ? state[key] : undefined;
  switch (operation.op) {
    case "set":
      return { ...state, [key]: operation.value };
    case "delete": {
      const { [key]: _, ...rest } = state;
      return rest;
    }
    case "push": {
      if (old !== undefined && !Array.isArray(old)) return state;
      const elements = [...(old ?? []), operation.value];
      const { maxRecords = elements.length } = operation;
      return { ...state, [key]: elements.slice(Math.max(0, elements.length - maxRecords)) };
    }
    case "pop":
      if (!Array.isArray(old)) return state;
      return { ...state, [key]: old.slice(0, Math.max(0, old.length - (operation.count ?? 1))) };
    case "increment": {
      const sum = add(old ?? 0, operation.by ?? 1);
      return sum === undefined ? state : { ...state, [key]: sum };
    }
  }
}

function add(old: unknown, by: number | bigint): number | bigint | undefined {
  if (typeof old === "number" && Number.isInteger(old)) {
    const sum = old + Number(by);
    return Number.isSafeInteger(sum) ? sum : BigInt(old) + BigInt(by);
  }
  return typeof old === "bigint" ? old + BigInt(by) : undefined;
}
