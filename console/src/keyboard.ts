import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { route, go } from "./route.js";

export const isHelpShown = signal(false);

/** `isUsed` returns whether the key has an effect on this page. */
type Key = [keys: string, meaning: string, isUsed?: () => boolean];

const KEYS: Key[] = [
  ["/", "Search on this page", () => searchField() !== null],
  ["j, k", "Next and previous line", () => hasActiveList() || lines().length > 0],
  ["Enter", "Open the line", () => hasActiveList() || lines().some((line) => openerOf(line) !== null)],
  ["u", "Back to the list", () => route.value.rest.length > 0],
  ["o, t, e", "Overview, threads, events"],
  ["Esc", "Close the dialog or leave the field"],
  ["?", "Show these keys"],
];

export const activeKeys = () => KEYS.filter(([, , isUsed]) => !isUsed || isUsed());

interface List {
  length: number;
  /** Moves the focus by `step` lines. Returns false if that line does not exist. */
  move: (step: number) => boolean;
}

/** Virtual lists on the page. `j` and `k` move in the list that was added last. */
const lists: { current: List }[] = [];

export function useActiveList(list: List): void {
  const current = useRef(list);
  current.current = list;
  useEffect(() => {
    lists.push(current);
    return () => void lists.splice(lists.indexOf(current), 1);
  }, []);
}

const activeList = () => lists.findLast(({ current }) => current.length > 0)?.current;
const hasActiveList = () => activeList() !== undefined;

const lines = () => [...document.querySelectorAll<HTMLElement>("main [data-line]")];
const lineOf = (element: Element | null) => element?.closest<HTMLElement>("main [data-line]") ?? undefined;

function openerOf(line: HTMLElement): HTMLElement | null {
  return line.matches("a, button") ? line : (line.querySelector<HTMLElement>("[data-open]") ?? line.querySelector<HTMLElement>("a[href]"));
}

const searchField = () => document.querySelector<HTMLElement>("[data-search]");

function move(step: number): void {
  const line = lineOf(document.activeElement);
  // if no line has the focus, starts in the virtual list, because any short lists are below it
  if (!line && activeList()?.move(step)) return;
  const targets = lines();
  const index = line ? targets.indexOf(line) + step : 0;
  targets[Math.max(0, Math.min(targets.length - 1, index))]?.focus();
}

const actions: Record<string, () => void> = {
  "/": () => searchField()?.focus(),
  "?": () => (isHelpShown.value = true),
  j: () => move(1),
  k: () => move(-1),
  u: () => {
    if (route.value.rest.length > 0) go(`#/${route.value.page}`);
  },
  o: () => go("#/overview"),
  t: () => go("#/threads"),
  e: () => go("#/events"),
};

const isWriting = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { target, key } = event;
  if (isWriting(target)) {
    if (key === "Escape" && !document.querySelector("dialog[open]")) (target as HTMLElement).blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  // the browser itself activates links and buttons
  const isLine = target instanceof HTMLElement && target.matches("[data-line]:not(a, button)");
  const act = key === "Enter" && isLine ? () => openerOf(target)?.click() : actions[key];
  if (!act) return;
  event.preventDefault();
  act();
});
