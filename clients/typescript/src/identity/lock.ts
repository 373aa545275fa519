import { isPage } from "../environment.js";

/** The locks that the tabs of an origin share, where the browser has them. */
export const locks: LockManager | undefined = isPage ? navigator.locks : undefined;

/** Acquires a lock that the tabs share. The result releases it. */
export function acquire(manager: LockManager, name: string, signal: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    manager.request(name, { signal }, () => new Promise<void>((release) => resolve(release))).catch(reject);
  });
}

/** Runs `act` while no other tab moves its thread. The event of a rotation may overtake the response that sets the cookie. */
export async function withRotationLock<T>(act: () => Promise<T>): Promise<T> {
  const release = locks && (await acquire(locks, "threadkeep rotation", AbortSignal.timeout(10_000)).catch(() => {}));
  return act().finally(release || undefined);
}
