import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, asProblem } from "./api/problem.js";
import { isReachable, recoveries } from "./api/request.js";

export interface Loaded<T> {
  value: T | undefined;
  problem: Problem | undefined;
  isLoading: boolean;
  reload: () => void;
}

/** Loads data on the first render, when `inputs` change, when `reload` is called, and after a service outage. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ value: undefined, problem: undefined, isLoading: true });
  const [reloads, setReloads] = useState(0);
  const reload = useCallback(() => setReloads((count) => count + 1), []);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setState((before) => ({ ...before, isLoading: true }));
    load(signal).then(
      (value) => {
        if (!signal.aborted) setState({ value, problem: undefined, isLoading: false });
      },
      (error: unknown) => {
        if (!signal.aborted) setState((before) => ({ ...before, problem: asProblem(error), isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [...inputs, reloads, recoveries.value]);
  return { ...state, reload };
}

/** Loads data like `useLoad`, and again every `ms` milliseconds while the tab is visible. */
export function usePolled<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[], ms: number): Loaded<T> {
  const loaded = useLoad(load, inputs);
  const { reload } = loaded;
  const isLoading = useRef(true);
  isLoading.current = loaded.isLoading;
  useEffect(() => {
    const timer = setInterval(() => {
      // skips a reload while the previous one is still loading
      if (!isLoading.current && !document.hidden && isReachable.value) reload();
    }, ms);
    return () => clearInterval(timer);
  }, [ms, reload]);
  return loaded;
}
