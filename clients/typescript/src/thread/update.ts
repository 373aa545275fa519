import { VersionMismatchError } from "../http/errors.js";
import { randomPause, sleep } from "../http/wait.js";
import type { Operation } from "../types/operation.js";
import type { Receipt, Snapshot } from "../types/receipt.js";

const MAX_PAUSE_MS = 1_000;
const MAX_ATTEMPTS = 100;

/** Reads, calls `change`, and merges. If the thread has changed, starts over, for up to `MAX_ATTEMPTS` attempts. */
export async function updateLoop<S>(
  read: () => Promise<Snapshot<S>>,
  change: (state: Partial<S>) => readonly Operation<any>[] | undefined | void | Promise<readonly Operation<any>[] | undefined | void>,
  merge: (operations: readonly Operation<any>[], ifMatch: string | number) => Promise<Receipt>,
  signal: AbortSignal | undefined,
): Promise<Receipt | undefined> {
  for (let tries = 0; ; tries++) {
    const { state, version, etag } = await read();
    const operations = await change(state);
    if (!operations?.length) return undefined;
    try {
      return await merge(operations, version ? etag : 0);
    } catch (error) {
      if (!(error instanceof VersionMismatchError) || tries + 1 === MAX_ATTEMPTS) throw error;
    }
    await sleep(randomPause(5, tries, MAX_PAUSE_MS), signal);
  }
}
