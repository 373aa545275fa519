import { camel } from "../http/camel.js";
import type { CallOptions } from "../types/options.js";
import type { ScopeWriteOptions } from "../types/scope.js";
import type { Requests } from "./requests.js";

export interface ScopeInfo {
  scope: string;
  exists: boolean;
  isEnded: boolean;
  version: number;
  keys: number;
  limitKeys: number;
  sizeBytes: number;
  limitBytes: number;
  tasks: number;
  unfinishedTasks: number;
  history: number;
  historyBytes: number;
  historyLimitBytes: number;
  createdAt: string | null;
  updatedAt: string | null;
  expiresAt: string | null;
}

export interface Scopes {
  describe(scope: string, o?: CallOptions): Promise<ScopeInfo>;
  /** Deletes all keys and tasks. With `keepUnfinished`, the call fails if a task is unfinished. */
  clear(scope: string, o?: ScopeWriteOptions & { keepUnfinished?: boolean | undefined }): Promise<{ version: number }>;
}

export const scopesOf = (requests: Requests): Scopes => ({
  async describe(scope, o) {
    return camel(await requests.post("/v1/scopes/describe", { scope }, o));
  },

  async clear(scope, { keepUnfinished, ifVersion, ...o } = {}) {
    const body = { scope, keep_unfinished: keepUnfinished, if_version: ifVersion };
    return { version: (await requests.keyed("/v1/scopes/clear", body, o)).version };
  },
});
