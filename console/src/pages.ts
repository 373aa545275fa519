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
 * Returns the first page for a key: the overview with the right `admin`, else the first page that the key may open, because
 * the overview has few figures for other keys.
 */
export function firstPage(): string {
  if (can("admin")) return "overview";
  return PAGES.find(([, , right]) => right && can(right))?.[0] ?? "overview";
}
