export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
type Members = { [key: string]: Value };

export const isObject = (value: Value | undefined): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function isSame(a: Value | undefined, b: Value | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, index) => isSame(element, b[index]));
  }
  if (isObject(a) && isObject(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => isSame(a[key], own(b, key)));
  }
  return a === b;
}

export function appendedElements(base: Value | undefined, mine: Value | undefined): Value[] | undefined {
  if (!Array.isArray(mine) || !(base === undefined || Array.isArray(base))) return undefined;
  const baseElements = base ?? [];
  return isSame(mine.slice(0, baseElements.length), baseElements) ? mine.slice(baseElements.length) : undefined;
}

/**
 * Applies the differences between `base` and `mine` to `stored`. Merges arrays by element and objects by member. Any
 * other value replaces the stored value.
 */
export function merge(base: Value | undefined, mine: Value | undefined, stored: Value | undefined): Value | undefined {
  if (isSame(base, mine)) return stored;
  if (isObject(mine) && isObject(stored) && (base === undefined || isObject(base))) {
    const merged: Members = { ...stored };
    for (const key of new Set([...Object.keys(base ?? {}), ...Object.keys(mine)])) {
      const value = merge(own(base, key), own(mine, key), own(stored, key));
      if (value === undefined) delete merged[key];
      else Object.defineProperty(merged, key, { value, enumerable: true, configurable: true, writable: true });
    }
    return merged;
  }
  const areArrays = Array.isArray(mine) && Array.isArray(stored) && (base === undefined || Array.isArray(base));
  return areArrays ? mergeArrays(base ?? [], mine, stored) : mine;
}

/** Merges arrays by index. If `mine` or `stored` moved or removed elements, combines both arrays' changes to `base`. */
function mergeArrays(base: Value[], mine: Value[], stored: Value[]): Value[] {
  const { length } = base;
  if (isShifted(base, mine) || isShifted(base, stored) || !hasSameElements(base, mine, stored)) {
    const removed = without(base, stored);
    return [...without(mine, removed), ...without(stored, base)];
  }
  const merged = base.map((element, index) => merge(element, mine[index], stored[index])!);
  return [...merged, ...stored.slice(length), ...mine.slice(length)];
}

/** Returns whether `list` is shorter than `base`, or contains an element of `base` at a new index. */
const isShifted = (base: Value[], list: Value[]): boolean =>
  list.length < base.length ||
  base.some((element, from) => {
    const isMovedTo = (other: Value, to: number) => isSame(element, other) && !isSame(other, base[to]);
    return !isSame(element, list[from]) && list.some(isMovedTo);
  });

/** Returns whether each element of `base` is unchanged in `mine` or `stored`, or has the same `id` in both arrays. */
const hasSameElements = (base: Value[], mine: Value[], stored: Value[]): boolean =>
  base.every((element, index) => {
    const sides = [mine[index], stored[index]];
    return sides.some((side) => isSame(element, side)) || sides.every((side) => isSame(idOf(element), idOf(side)));
  });

const idOf = (element: Value | undefined): Value | undefined => (isObject(element) ? own(element, "id") : undefined);

function without(list: Value[], others: Value[]): Value[] {
  const counts = new Map<string, number>();
  for (const other of others.map((other) => JSON.stringify(other))) counts.set(other, (counts.get(other) ?? 0) + 1);
  return list.filter((element) => {
    const text = JSON.stringify(element);
    const count = counts.get(text) ?? 0;
    counts.set(text, count - 1);
    return count <= 0;
  });
}

/** Returns the member `key`, unless it is inherited, such as `toString`. */
export const own = (members: Members | undefined, key: string): Value | undefined =>
  members && Object.hasOwn(members, key) ? members[key] : undefined;
