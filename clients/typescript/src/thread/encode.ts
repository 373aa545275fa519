import type { JsonFormat } from "../types/json.js";
import type { Operation } from "../types/operation.js";

/** The JSON of a value that an application gave. */
export function encode(json: JsonFormat, value: unknown): string {
  const text = json.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError("JSON cannot express this value.");
  return text;
}

/** An object, from members that are JSON already. Those without a text are left out. */
export function objectText(members: { [name: string]: string | undefined }): string {
  const texts = Object.entries(members).flatMap(([name, text]) =>
    text === undefined ? [] : [JSON.stringify(name) + ":" + text],
  );
  return `{${texts.join()}}`;
}

/** The body of a merge. Integers are written digit for digit. */
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
