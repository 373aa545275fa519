import { membersOf, stringOf } from "./json/text.js";
import { excerpt } from "./json/visible.js";

/** Units of a title in a list. */
const TITLE_MAX = 80;

/** The member `title` of a thread's metadata, which lists begin a row with. */
export function titleOf(metadata: string): string | undefined {
  const title = stringOf(membersOf(metadata).get("title"))?.trim();
  return title ? excerpt(title, TITLE_MAX) : undefined;
}
