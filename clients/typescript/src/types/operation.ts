import type { Json } from "./json.js";
import type { AnyState, ArrayKey, CounterKey, Element, Key, Value } from "./state.js";

export type Operation<S = AnyState> =
  | { [K in Key<S>]-?: { op: "set"; key: K; value: Value<S, K> } }[Key<S>]
  | { [K in ArrayKey<S>]-?: { op: "push"; key: K; value: Element<S, K>; maxRecords?: number | undefined } }[ArrayKey<S>]
  | { op: "increment"; key: CounterKey<S>; by?: number | bigint | undefined }
  | { op: "delete"; key: Key<S> }
  | { op: "clear" }
  | { op: "pop"; key: ArrayKey<S>; count?: number | undefined }
  | { op: "append"; id?: string | undefined; value: Json }
  | { op: "settle"; effect: string; fence?: string | undefined; result: Json }
  | { op: "settle"; effect: string; fence?: string | undefined; error: Json };

/** Result of one operation of a merge. */
export interface OperationResult {
  length?: number;
  /** Value of the counter after an increment. The value is a `bigint` if a `number` would not be exact. */
  value?: number | bigint;
  deleted?: boolean;
  /** Elements that a `pop` removed, oldest first. */
  values?: any[];
  id?: string;
  seq?: number;
  repeated?: boolean;
  /** State of the effect that a `settle` recorded. */
  state?: "done" | "failed";
}
