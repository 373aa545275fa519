import { signal } from "@preact/signals";

/** The page that the address names, and its further parts. */
export interface Route {
  page: string;
  rest: string[];
}

const read = (): Route => {
  const [page = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { page, rest };
};

export const route = signal<Route>(read());

/** The label of the part that a page shows, for the title of the tab. */
export const shownPart = signal("");

addEventListener("hashchange", () => (route.value = read()));

/** Puts another address in the place of the present one, which leaves the history of the browser. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  route.value = read();
}

export function go(href: string): void {
  location.hash = href;
}
