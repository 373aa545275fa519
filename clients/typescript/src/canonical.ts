import { encode } from "./thread/encode.js";

/** Matches text that UTF-8 cannot express. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Serializes a value in the canonical form of RFC 8785, so that equal values result in equal strings. */
export function canonical(value: any): string {
  if (typeof value?.toJSON === "function") return canonical(value.toJSON(""));
  if (Array.isArray(value)) return `[${Array.from(value, (element) => canonical(element ?? null)).join()}]`;
  if (typeof value === "object" && value) {
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    // sorts by UTF-16 code units, as RFC 8785 requires
    return `{${names.sort().map((name) => `${canonical(name)}:${canonical(value[name])}`).join()}}`;
  }
  const isExpressible = typeof value === "number" ? Number.isFinite(value) : !LONE_SURROGATE.test(value);
  return encode(JSON, isExpressible ? value : undefined);
}
