import type { JsonFormat } from "../types/json.js";
import type { Operation } from "../types/operation.js";

export function encode(json: JsonFormat, value: unknown): string {
  const text = json.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError("JSON cannot express this value.");
  return text;
}

export function objectText(members: { [name: string]: string | undefined }): string {
  const texts = Object.entries(members).flatMap(([name, text]) =>
    text === undefined ? [] : [JSON.stringify(name) + ":" + text],
  );
  return `{${texts.join()}}`;
}

/** Serializes a merge. Keeps all digits of a `bigint`. */
export function mergeText(json: JsonFormat, operations: readonly Operation<any>[]): string {
  const texts = operations.map((operation) => {
    const { op, key, id, value, maxRecords, by, count } = operation as { [name: string]: any };
    return objectText({
      op: JSON.stringify(op),
      key: JSON.stringify(key),
      id: JSON.stringify(id),
      value: value === undefined && op !== "set" && op !== "push" && op !== "append" ? undefined : encode(json, value),
      max_records: JSON.stringify(maxRecords),
      by: by?.toString(),
      count: JSON.stringify(count),
    });
  });
  return `{"operations":[${texts.join()}]}`;
}
