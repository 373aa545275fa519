import { isPage } from "../environment.js";

export const locks: LockManager | undefined = isPage ? navigator.locks : undefined;

export function acquire(manager: LockManager, name: string, signal: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    manager.request(name, { signal }, () => new Promise<void>((release) => resolve(release))).catch(reject);
  });
}

/**
 * Runs `act` when no other tab is rotating a thread, or after 10 s. Without this wait, `act` could send the old cookie,
 * because a rotation event can arrive before the new cookie is set.
 */
export async function withRotationLock<T>(act: () => Promise<T>): Promise<T> {
  const release = locks && (await acquire(locks, "threadkeep rotation", AbortSignal.timeout(10_000)).catch(() => {}));
  return act().finally(release || undefined);
}
