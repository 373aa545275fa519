/** Matches JSON strings, so that digits inside them are skipped, and numbers that may be too long for a `number`. */
const LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{14,}/g;

export function exactIntegers(text: string): any {
  return JSON.parse(text.replace(LONG, (match) => (/^-?\d+$/.test(match) ? `"${match}"` : match)));
}

/** Converts an integer from `exactIntegers` to a `number`, or to a `bigint` if a `number` would not be exact. */
export function integer(value: number | string | undefined): number | bigint | undefined {
  return typeof value === "string" ? (Number.isSafeInteger(+value) ? +value : BigInt(value)) : value;
}
