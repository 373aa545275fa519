import { membersOf, stringOf } from "./json/text.js";
import { excerpt } from "./json/visible.js";

const TITLE_MAX = 80;

export function titleOf(metadata: string): string | undefined {
  const title = stringOf(membersOf(metadata).get("title"))?.trim();
  return title ? excerpt(title, TITLE_MAX) : undefined;
}
