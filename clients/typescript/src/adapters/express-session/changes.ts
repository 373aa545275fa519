import type { Operation } from "../../types/operation.js";
import { MAX_OPERATIONS } from "../merges.js";
import { added, isObject, isSame, merge, own, type Value } from "./merge.js";

export type Values = { [key: string]: Value };

export const valuesOf = (session: object): Values => JSON.parse(JSON.stringify(session)) as Values;

export class Changes {
  readonly #given: Values;
  readonly #mine: Values;
  readonly #keys: string[];
  /** True if the values at the beginning of the request are known. */
  readonly #isKnown: boolean;

  constructor(given: Values | undefined, mine: Values) {
    this.#isKnown = given !== undefined;
    this.#given = given ?? {};
    this.#mine = mine;
    const all = new Set([...Object.keys(this.#given), ...Object.keys(mine)]);
    this.#keys = [...all].filter((key) => !isSame(own(this.#given, key), own(mine, key)));
  }

  get keys(): readonly string[] {
    return this.#keys;
  }

  /** Operations that can be sent without reading the stored values, or undefined if a change requires a read. */
  get unconditional(): Operation[] | undefined {
    const operations: Operation[] = [];
    for (const key of this.#keys) {
      const [given, mine] = [own(this.#given, key), own(this.#mine, key)];
      const more = this.#isKnown ? added(given, mine) : undefined;
      // even an empty array must not replace elements that another request has pushed in the meantime
      const needsStored = more || isObject(mine) || (Array.isArray(mine) && Array.isArray(given));
      if (mine === undefined) operations.push({ op: "delete", key });
      else if (more?.length) operations.push(...more.map((value) => ({ op: "push", key, value }) as const));
      else if (key === "cookie" || !needsStored) operations.push({ op: "set", key, value: mine });
      else return undefined;
    }
    return operations.length > MAX_OPERATIONS ? undefined : operations;
  }

  onto(stored: Values): Operation[] {
    return this.#keys.map((key) => {
      const [given, mine] = [own(this.#given, key), own(this.#mine, key)];
      const isPlain = key === "cookie" || (!this.#isKnown && Array.isArray(mine));
      const value = isPlain ? mine : merge(given, mine, own(stored, key));
      return value === undefined ? { op: "delete", key } : { op: "set", key, value };
    });
  }
}
