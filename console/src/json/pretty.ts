/** Maximum number of indented levels. With 512 levels, the indentation would be longer than the JSON itself. */
const INDENTED_MAX = 12;

/** Breaks compact JSON into lines. Adds only whitespace between tokens. */
export function pretty(text: string): string {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  const line = () => "\n" + "  ".repeat(Math.min(depth, INDENTED_MAX));
  for (let i = 0; i < text.length; i++) {
    const unit = text[i];
    if (unit === '"') {
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === "\\") i++;
    } else if (unit === "{" || unit === "[") {
      const closing = text[i + 1];
      if (closing === "}" || closing === "]") {
        i++;
        continue;
      }
      depth++;
      parts.push(text.slice(from, i + 1), line());
      from = i + 1;
    } else if (unit === "}" || unit === "]") {
      depth--;
      parts.push(text.slice(from, i), line());
      from = i;
    } else if (unit === ",") {
      parts.push(text.slice(from, i + 1), line());
      from = i + 1;
    } else if (unit === ":") {
      parts.push(text.slice(from, i + 1), " ");
      from = i + 1;
    }
  }
  return parts.join("") + text.slice(from);
}
