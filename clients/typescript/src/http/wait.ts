import { TimeoutError } from "./errors.js";

/** Rejects with the reason of `signal` as soon as it is aborted, whatever `promise` does. */
export function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Waits, unless `signal` is aborted. `wake` may end the wait. */
export function sleep(ms: number, signal?: AbortSignal, wake?: (now: () => void) => void): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
    wake?.(resolve);
  });
  return orAbort(over, signal).finally(() => clearTimeout(timer));
}

/** A random time, so that callers do not all come back at once. It grows with the number of tries. */
export const randomPause = (firstMs: number, tries: number, maxMs: number): number =>
  Math.random() * Math.min(maxMs, firstMs * 2 ** tries);

/** A controller that is aborted with `outer`, and no longer listens to it when it is aborted itself. */
export function linked(outer: AbortSignal | undefined): AbortController {
  const controller = new AbortController();
  const stop = () => controller.abort(outer!.reason);
  if (outer?.aborted) stop();
  else outer?.addEventListener("abort", stop, { signal: controller.signal });
  return controller;
}

/** Runs `act` with a signal that is aborted with `outer`, or by a `TimeoutError` after `ms`. */
export async function withDeadline<T>(ms: number, outer: AbortSignal | undefined, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = linked(outer);
  const late = () => controller.abort(new TimeoutError("timeout", `timeout: No response arrived within ${ms} ms.`));
  const timer = setTimeout(late, ms);
  try {
    return await act(controller.signal);
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}
