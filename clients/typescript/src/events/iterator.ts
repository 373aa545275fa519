import { linked } from "../http/wait.js";

/** Returns an iterator whose `return()` closes the source immediately, even if a `next()` is pending. */
export function closing<T>(
  signal: AbortSignal | undefined,
  generate: (signal: AbortSignal) => AsyncGenerator<T, void>,
): AsyncIterableIterator<T> {
  const controller = linked(signal);
  const inner = generate(controller.signal);
  const end = { done: true as const, value: undefined };
  let isClosed = false;
  return {
    async next() {
      try {
        return await inner.next();
      } catch (error) {
        if (isClosed) return end;
        throw error;
      }
    },
    async return() {
      isClosed = true;
      controller.abort();
      await inner.return().catch(() => {});
      return end;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
