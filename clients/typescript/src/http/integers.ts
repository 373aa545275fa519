/** Strings, and numbers with at least 16 characters, in a JSON text. */
const LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]{14,}/g;

/** Parses JSON with long integers as texts. */
export function parseWithLongIntegers(text: string): unknown {
  return JSON.parse(text.replace(LONG, (match) => (/^-?\d+$/.test(match) ? `"${match}"` : match)));
}

/** An integer as the server sent it: a `number` if that is exact. */
export function integer(value: number | string | undefined): number | bigint | undefined {
  if (typeof value !== "string") return value;
  const exact = BigInt(value);
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
}
