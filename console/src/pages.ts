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
 * Returns the first page for a key. With the right `admin`, this is the overview. Without that right, the overview
 * shows only a few figures, so the first page is the first one that the key may open.
 */
export function firstPage(): string {
  if (can("admin")) return "overview";
  return PAGES.find(([, , right]) => right && can(right))?.[0] ?? "overview";
}
