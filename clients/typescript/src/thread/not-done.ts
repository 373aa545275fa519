/** Returned by a `check` of `turn.effect` if the tool did not run. */
export const NOT_DONE: unique symbol = Symbol("NOT_DONE");
