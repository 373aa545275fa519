/** Matches strings, and numbers of at least 16 characters, in JSON. */
const LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{14,}/g;

export function exactIntegers(text: string): any {
  return JSON.parse(text.replace(LONG, (match) => (/^-?\d+$/.test(match) ? `"${match}"` : match)));
}

/** Converts an integer of `exactIntegers`: to a `number` if that is exact. */
export function integer(value: number | string | undefined): number | bigint | undefined {
  return typeof value === "string" ? (Number.isSafeInteger(+value) ? +value : BigInt(value)) : value;
}
