/** An iterator that closes what it reads from as soon as it is left, even while a `next()` waits. */
export function closing<T>(
  signal: AbortSignal | undefined,
  generate: (signal: AbortSignal) => AsyncGenerator<T, void>,
): AsyncIterableIterator<T> {
  const controller = new AbortController();
  const stop = () => controller.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  const inner = generate(controller.signal);
  let isLeft = false;
  return {
    async next() {
      try {
        return await inner.next();
      } catch (error) {
        if (isLeft) return { done: true, value: undefined };
        throw error;
      }
    },
    async return() {
      isLeft = true;
      signal?.removeEventListener("abort", stop);
      controller.abort();
      await inner.return().catch(() => {});
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
