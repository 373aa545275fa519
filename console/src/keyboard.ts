import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { route, go } from "./route.js";

/** Whether the list of keys is shown. */
export const isHelpShown = signal(false);

export const KEYS: [string, string][] = [
  ["/", "Search on this page"],
  ["j, k", "Next and previous line"],
  ["Enter", "Open the line"],
  ["u", "Up: from a thread to the list"],
  ["o, t, e", "Overview, threads, events"],
  ["Esc", "Close the dialog, leave the field"],
  ["?", "Show these keys"],
];

/** The list that `j` and `k` move in: the newest one on the page. */
const lists: ((step: number) => void)[] = [];

export function useActiveList(move: (step: number) => void): void {
  const current = useRef(move);
  current.current = move;
  useEffect(() => {
    const call = (step: number) => current.current(step);
    lists.push(call);
    return () => void lists.splice(lists.indexOf(call), 1);
  }, []);
}

const isWriting = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isWriting(event.target)) {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) (event.target as HTMLElement).blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const act = actions[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const actions: Record<string, () => void> = {
  "/": () => document.querySelector<HTMLElement>("[data-search]")?.focus(),
  "?": () => (isHelpShown.value = true),
  j: () => lists.at(-1)?.(1),
  k: () => lists.at(-1)?.(-1),
  u: () => go(`#/${route.value.rest.length ? route.value.page : ""}`),
  o: () => go("#/overview"),
  t: () => go("#/threads"),
  e: () => go("#/events"),
};
