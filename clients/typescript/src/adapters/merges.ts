import type { Operation } from "../types/operation.js";
import type { WriteOptions } from "../types/options.js";
import type { Thread } from "../types/thread.js";

export const MAX_OPERATIONS = 1_000;

/** Merges any number of operations, with as few writes as possible. Stops at the first failure. */
export async function mergeAll<S extends object>(
  thread: Thread<S>,
  operations: readonly Operation<S>[],
  optionsOf: (isFirst: boolean) => WriteOptions,
): Promise<void> {
  for (let start = 0; start < operations.length; start += MAX_OPERATIONS) {
    await thread.merge(operations.slice(start, start + MAX_OPERATIONS), optionsOf(start === 0));
  }
}
