import type { AgentInputItem } from "@openai/agents";
import { base64, fromBase64 } from "../../bytes.js";

export type Item = { [key: string]: any };

/** Marks encoded bytes. If an original object has only the member `$bytes`, wraps its value in an array as a marker. */
const BYTES = "$bytes";

export const encode = (item: AgentInputItem): Item =>
  map(item, (value) => {
    if (value instanceof Uint8Array) return { [BYTES]: base64(value) };
    return hasOnlyBytes(value) ? { [BYTES]: [encode(value[BYTES])] } : undefined;
  }) as Item;

export const decode = (item: Item): AgentInputItem =>
  map(item, (value) => {
    if (!hasOnlyBytes(value)) return undefined;
    const { [BYTES]: content } = value;
    if (Array.isArray(content)) return { [BYTES]: decode(content[0]) };
    return fromBase64(content);
  }) as AgentInputItem;

const hasOnlyBytes = (value: object): value is { [BYTES]: any } =>
  Object.hasOwn(value, BYTES) && Object.keys(value).length === 1;

/** Serializes a value with sorted members, so that equal values result in equal strings. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function map(value: unknown, replace: (value: object) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  if (Array.isArray(value)) return value.map((element) => map(element, replace));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member, replace)]));
}
