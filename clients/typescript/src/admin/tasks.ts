import { camel } from "../http/camel.js";
import type { CallOptions } from "../types/options.js";
import type { ScopeWriteOptions } from "../types/scope.js";
import type { Requests } from "./requests.js";

export type TaskStatus = "pending" | "in_progress" | "completed";

export interface Task {
  id: string;
  content: string;
  status: TaskStatus;
  activeForm?: string | null;
}

export interface NewTask {
  id?: string | undefined;
  content: string;
  status: TaskStatus;
  activeForm?: string | undefined;
}

/** A change to one task, identified by ID or index. */
export interface TaskChange {
  id?: string | undefined;
  index?: number | undefined;
  content?: string | undefined;
  status?: TaskStatus | undefined;
  activeForm?: string | undefined;
}

export interface Tasks {
  get(o?: CallOptions): Promise<{ tasks: Task[]; version: number }>;
  /** Replaces the task list. With `keepUnfinished`, fails unless the new list contains every unfinished task. */
  set(
    tasks: readonly NewTask[],
    o?: ScopeWriteOptions & { keepUnfinished?: boolean | undefined },
  ): Promise<{ version: number }>;
  update(change: TaskChange, o?: ScopeWriteOptions): Promise<{ version: number }>;
}

const wire = ({ activeForm, ...task }: NewTask | TaskChange) => ({ ...task, active_form: activeForm });

export const tasksOf = (requests: Requests, scope: string): Tasks => ({
  async get(o) {
    const { tasks, version } = await requests.post("/v1/scopes/tasks/get", { scope }, o);
    return { tasks: tasks.map(camel<Task>), version };
  },

  async set(tasks, { keepUnfinished, ifVersion, ...o } = {}) {
    const body = { scope, tasks: tasks.map(wire), keep_unfinished: keepUnfinished, if_version: ifVersion };
    return { version: (await requests.keyed("/v1/scopes/tasks/set", body, o)).version };
  },

  async update(change, { ifVersion, ...o } = {}) {
    const body = { scope, ...wire(change), if_version: ifVersion };
    return { version: (await requests.keyed("/v1/scopes/tasks/update", body, o)).version };
  },
});
