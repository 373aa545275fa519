/**
 * Locates values in JSON. The service stores values unchanged, including numbers of any length, duplicate keys, and up
 * to 512 levels of nesting. `JSON.parse` would change some values, so the console uses these functions instead. They
 * read a string once, without recursion.
 */

/** A part of a string. `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

export interface Child {
  /** The key with its quotes. Undefined for array elements. */
  key: Span | undefined;
  value: Span;
}

export type Kind = "object" | "array" | "string" | "number" | "literal";

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_ARRAY = 91;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
const COMMA = 44;
const COLON = 58;

export function kindAt(text: string, start: number): Kind {
  switch (text.charCodeAt(start)) {
    case OPEN_OBJECT:
      return "object";
    case OPEN_ARRAY:
      return "array";
    case QUOTE:
      return "string";
    case 116: // true
    case 102: // false
    case 110: // null
      return "literal";
    default:
      return "number";
  }
}

/** Returns the index after the value at `start`. */
export function endOf(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return endOfWord(text, start);
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i) - 1;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth++;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (--depth === 0) return i + 1;
    }
  }
  return text.length;
}

export function children(text: string, span: Span): Child[] {
  const isObject = text.charCodeAt(span.start) === OPEN_OBJECT;
  if (!isObject && text.charCodeAt(span.start) !== OPEN_ARRAY) return [];
  const found: Child[] = [];
  let i = skip(text, span.start + 1);
  while (i < span.end - 1) {
    let key: Span | undefined;
    if (isObject) {
      const end = endOfString(text, i);
      key = { start: i, end };
      i = skip(text, end);
    }
    const end = endOf(text, i);
    if (end <= i) break; // not JSON
    found.push({ key, value: { start: i, end } });
    i = skip(text, end);
  }
  return found;
}

/** Returns a member's value. If the key occurs several times, returns the last value. */
export function member(text: string, span: Span, name: string): Span | undefined {
  const match = children(text, span).findLast(({ key }) => key && decoded(text, key) === name);
  return match?.value;
}

export function decoded(text: string, span: Span): string {
  try {
    return JSON.parse(text.slice(span.start, span.end)) as string;
  } catch {
    return text.slice(span.start, span.end);
  }
}

export function membersOf(text: string): Map<string, string> {
  const root = { start: skip(text, 0), end: text.length };
  const named = children(text, root).filter(({ key }) => key);
  return new Map(named.map(({ key, value }) => [decoded(text, key!), text.slice(value.start, value.end)]));
}

export function elementsOf(text: string): string[] {
  return children(text, { start: skip(text, 0), end: text.length }).map(({ value }) => text.slice(value.start, value.end));
}

export function stringOf(json: string | undefined): string | undefined {
  return json !== undefined && kindAt(json, 0) === "string" ? decoded(json, { start: 0, end: json.length }) : undefined;
}

export function bytesOf(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) bytes += unit > 0x7ff ? 2 : 1;
    if (unit >= 0xd800 && unit < 0xdc00) {
      const low = text.charCodeAt(i + 1);
      if (low >= 0xdc00 && low < 0xe000) i++; // a surrogate pair has 2 units and 4 bytes
    }
  }
  return bytes;
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === BACKSLASH) i++;
    else if (unit === QUOTE) return i + 1;
  }
  return text.length;
}

function endOfWord(text: string, start: number): number {
  let i = start;
  for (; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === COMMA || unit === CLOSE_ARRAY || unit === CLOSE_OBJECT || isSpace(unit)) break;
  }
  return i;
}

function skip(text: string, start: number): number {
  let i = start;
  for (; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit !== COMMA && unit !== COLON && !isSpace(unit)) break;
  }
  return i;
}

const isSpace = (unit: number) => unit === 32 || unit === 10 || unit === 13 || unit === 9;
