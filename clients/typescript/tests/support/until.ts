/** Time limit in ms for steps that take one second on an idle machine, but may take longer while other tests run. */
export const PATIENCE_MS = 300_000;

export async function until(expected: string, condition: () => unknown, ms = PATIENCE_MS): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`gave up waiting until ${expected}`);
    await pause(20);
  }
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Retries with longer TTLs, because a short lease expires if the machine pauses. */
export async function withLongerTtls(attempt: (ttlSeconds: number) => Promise<void>, ttls = [1, 5, 60]): Promise<void> {
  for (const ttlSeconds of ttls.slice(0, -1)) {
    try {
      return await attempt(ttlSeconds);
    } catch (error) {
      console.log(`with a TTL of ${ttlSeconds} s:`, error);
    }
  }
  await attempt(ttls.at(-1)!);
}

export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
