import { can } from "./session.js";

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
 * Returns the page to open first: the overview if the key has the `admin` right, or else the first page that the key
 * may open. Without `admin`, the overview shows only a few figures.
 */
export function firstPage(): string {
  if (can("admin")) return "overview";
  return PAGES.find(([, , right]) => right && can(right))?.[0] ?? "overview";
}
