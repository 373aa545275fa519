import { TimeoutError } from "./errors.js";

export function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

export function sleep(ms: number, signal?: AbortSignal, onWake?: (wake: () => void) => void): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
    onWake?.(resolve);
  });
  return orAbort(elapsed, signal).finally(() => clearTimeout(timer));
}

/** Returns a delay in ms. Random, to spread out retries. Its upper bound doubles with each try, up to `maxMs`. */
export const randomPause = (firstMs: number, tries: number, maxMs: number): number =>
  Math.random() * Math.min(maxMs, firstMs * 2 ** tries);

export function linked(outer: AbortSignal | undefined): AbortController {
  const controller = new AbortController();
  const stop = () => controller.abort(outer!.reason);
  if (outer?.aborted) stop();
  else outer?.addEventListener("abort", stop, { signal: controller.signal });
  return controller;
}

export async function withDeadline<T>(ms: number, outer: AbortSignal | undefined, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = linked(outer);
  const onTimeout = () => controller.abort(new TimeoutError("timeout", `timeout: No response arrived within ${ms} ms.`));
  const timer = setTimeout(onTimeout, ms);
  try {
    return await act(controller.signal);
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}
