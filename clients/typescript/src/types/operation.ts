import type { Json } from "./json.js";
import type { AnyState, ArrayKey, CounterKey, Element, Key, Value } from "./state.js";

/** One operation of a merge. */
export type Operation<S = AnyState> =
  | { [K in Key<S>]-?: { op: "set"; key: K; value: Value<S, K> } }[Key<S>]
  | { [K in ArrayKey<S>]-?: { op: "push"; key: K; value: Element<S, K>; maxRecords?: number | undefined } }[ArrayKey<S>]
  | { op: "increment"; key: CounterKey<S>; by?: number | bigint | undefined }
  | { op: "delete"; key: Key<S> }
  | { op: "clear" }
  | { op: "pop"; key: ArrayKey<S>; count?: number | undefined }
  | { op: "append"; id?: string | undefined; value: Json };

/** The result of one operation of a merge. */
export interface OperationResult {
  /** The length of the array after a push. */
  length?: number;
  /** The counter after an increment: a `bigint` if a `number` would not be exact. */
  value?: number | bigint;
  /** Whether a deletion found its key. */
  deleted?: boolean;
  /** The elements that a pop removed, oldest first. */
  values?: any[];
  /** The ID of an appended item. */
  id?: string;
  /** The place of an appended item in the history. */
  seq?: number;
  /** Whether the history already had the appended item. */
  repeated?: boolean;
}
