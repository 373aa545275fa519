/**
 * Characters that would hide, reorder or break text on a page: controls, marks of direction, spaces without a width, line
 * separators, tags, lone surrogates.
 */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text with escapes for such characters. Text that runs from right to left stays; the page isolates it. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** The same in one line, cut after `max` units, with a mark for the rest. */
export function excerpt(text: string, max: number): string {
  const part = text.length > max ? text.slice(0, max) + "…" : text;
  return visible(part.replace(/[\n\t]/g, (unit) => (unit === "\n" ? "⏎" : " ")));
}
