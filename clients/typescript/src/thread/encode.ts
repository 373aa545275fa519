import { definedEntries } from "../defined.js";
import type { JsonFormat } from "../types/json.js";
import type { Operation } from "../types/operation.js";

export function encode(json: JsonFormat, value: unknown): string {
  const text = json.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError("JSON cannot express this value.");
  return text;
}

/** Serializes an object with `members`, and with `texts`, which are already serialized. */
export function objectText(members: object, texts: { [name: string]: string | undefined }): string {
  const more = definedEntries(texts).map(([name, text]) => JSON.stringify(name) + ":" + text);
  return `{${[JSON.stringify(members).slice(1, -1), ...more].filter(Boolean).join()}}`;
}

/** Serializes a merge. Keeps all digits of a `bigint`. */
export function mergeText(json: JsonFormat, operations: readonly Operation<any>[]): string {
  const texts = operations.map((operation) => {
    const { op, key, id, value, maxRecords, by, count, effect, fence, result, error } = operation as { [name: string]: any };
    const members = { op, key, id, max_records: maxRecords, count, effect, fence };
    return objectText(members, {
      value: value === undefined && op !== "set" && op !== "push" && op !== "append" ? undefined : encode(json, value),
      by: by?.toString(),
      result: op !== "settle" || error !== undefined ? undefined : encode(json, result ?? null),
      error: error === undefined ? undefined : encode(json, error),
    });
  });
  return `{"operations":[${texts.join()}]}`;
}
