import type { AgentInputItem } from "@openai/agents";

/** An item as JSON. */
export type Item = { [key: string]: any };

/** The only member of an object that stands for bytes, which JSON cannot express. */
const BYTES = "$bytes";

export const encode = (item: AgentInputItem): Item =>
  map(item, (value) => (value instanceof Uint8Array ? { [BYTES]: base64(value) } : undefined)) as Item;

export const decode = (item: Item): AgentInputItem =>
  map(item, (value) => {
    const { [BYTES]: text, ...rest } = value as Item;
    if (typeof text !== "string" || Object.keys(rest).length) return undefined;
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }) as AgentInputItem;

/** JSON with the members of objects in order, so that equal values have equal texts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** A copy in which some objects are replaced. */
function map(value: unknown, replace: (value: object) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  if (Array.isArray(value)) return value.map((element) => map(element, replace));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member, replace)]));
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
