/** Strings, and numbers with at least 16 characters, in a JSON text. */
const LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{14,}/g;

/** Parses JSON with long integers as texts. */
export function exactIntegers(text: string): any {
  return JSON.parse(text.replace(LONG, (match) => (/^-?\d+$/.test(match) ? `"${match}"` : match)));
}

/** An integer as `exactIntegers` returns it: a `number` if that is exact. */
export function integer(value: number | string | undefined): number | bigint | undefined {
  return typeof value === "string" ? (Number.isSafeInteger(+value) ? +value : BigInt(value)) : value;
}
