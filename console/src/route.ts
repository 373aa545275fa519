import { signal } from "@preact/signals";

export interface Route {
  page: string;
  rest: string[];
}

const read = (): Route => {
  const [page = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { page, rest };
};

export const route = signal<Route>(read());

export const shownPart = signal("");

addEventListener("hashchange", () => (route.value = read()));

/** Replaces the address without adding a browser history entry. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  route.value = read();
}

export function go(href: string): void {
  location.hash = href;
}
