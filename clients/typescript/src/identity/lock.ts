import { isPage } from "../environment.js";

/** The locks that the tabs of an origin share, where the browser has them. */
export const locks: LockManager | undefined = isPage ? navigator.locks : undefined;

/** Acquires a lock that the tabs share. The result releases it. */
export function acquire(manager: LockManager, name: string, signal: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    manager.request(name, { signal }, () => new Promise<void>((release) => resolve(release))).catch(reject);
  });
}
