import type { Operation } from "../../types/operation.js";
import { MAX_OPERATIONS } from "../merges.js";
import { appendedElements, isObject, isSame, merge, own, type Value } from "./merge.js";

export type Values = { [key: string]: Value };

export const valuesOf = (session: object): Values => JSON.parse(JSON.stringify(session)) as Values;

export class Changes {
  readonly #base: Values;
  readonly #mine: Values;
  readonly #keys: string[];
  /** True if the session's values at the beginning of the request are known. */
  readonly #isKnown: boolean;

  constructor(base: Values | undefined, mine: Values) {
    this.#isKnown = base !== undefined;
    this.#base = base ?? {};
    this.#mine = mine;
    const allKeys = new Set([...Object.keys(this.#base), ...Object.keys(mine)]);
    this.#keys = [...allKeys].filter((key) => !isSame(own(this.#base, key), own(mine, key)));
  }

  get keys(): readonly string[] {
    return this.#keys;
  }

  /** Operations that can be sent without reading the stored values, or undefined if a change requires a read. */
  get unconditional(): Operation[] | undefined {
    const operations: Operation[] = [];
    for (const key of this.#keys) {
      const [base, mine] = [own(this.#base, key), own(this.#mine, key)];
      const newElements = this.#isKnown ? appendedElements(base, mine) : undefined;
      // a new empty array must not replace elements that another request has pushed since the session was loaded
      const needsStored = newElements || isObject(mine) || (Array.isArray(mine) && Array.isArray(base));
      if (mine === undefined) operations.push({ op: "delete", key });
      else if (newElements?.length) operations.push(...newElements.map((value) => ({ op: "push", key, value }) as const));
      else if (key === "cookie" || !needsStored) operations.push({ op: "set", key, value: mine });
      else return undefined;
    }
    return operations.length > MAX_OPERATIONS ? undefined : operations;
  }

  operationsFor(stored: Values): Operation[] {
    return this.#keys.map((key) => {
      const [base, mine] = [own(this.#base, key), own(this.#mine, key)];
      const isPlain = key === "cookie" || (!this.#isKnown && Array.isArray(mine));
      const value = isPlain ? mine : merge(base, mine, own(stored, key));
      return value === undefined ? { op: "delete", key } : { op: "set", key, value };
    });
  }
}
