"use client";

export { ThreadProvider } from "./context.js";
export type { FailedWrite, ThreadStatus } from "./snapshot.js";
export { useThread, type UseThread, type UseThreadOptions } from "./use-thread.js";
export { useThreads, type UseThreads } from "./use-threads.js";
