import { can } from "./session.js";

/** The pages, with the right that each one needs. */
export const PAGES: readonly [page: string, label: string, right?: string][] = [
  ["overview", "Overview"],
  ["threads", "Threads", "threads.read"],
  ["playground", "Playground", "threads"],
  ["events", "Events", "events"],
  ["webhooks", "Webhooks", "webhooks"],
  ["archives", "Archives", "threads.read"],
  ["statistics", "Statistics"],
  ["settings", "Settings"],
];

/**
 * The page that a key opens on: the overview with the right `admin`, and otherwise the first page that the key has the right to. The
 * overview has few figures for other keys, and none if `/metrics` is at another address.
 */
export function firstPage(): string {
  if (can("admin")) return "overview";
  return PAGES.find(([, , right]) => right && can(right))?.[0] ?? "overview";
}
