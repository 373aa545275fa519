/**
 * Matches characters that hide, reorder or break text: controls, direction marks, line separators and lone surrogates.
 * Also matches characters that browsers do not render, such as zero-width spaces, tags and variation selectors.
 */
const UNSEEN = String.raw`[\p{Default_Ignorable_Code_Point}\p{Cs}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb]`;

/** Matches an emoji with a modifier or selector. Elsewhere, selectors are escaped, because they could hide content. */
const EMOJI = String.raw`\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{Emoji_Modifier}?`;
const SHOWN = String.raw`${EMOJI}(?:\u200d${EMOJI})*|[0-9#*]\ufe0f\u20e3`;

const SHOWN_OR_UNSEEN = new RegExp(`(${SHOWN})|${UNSEEN}`, "gu");

const escaped = (character: string) => {
  const code = character.codePointAt(0)!;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : "\\u" + code.toString(16).padStart(4, "0");
};

/** Escapes invisible characters. Does not change right-to-left text, because the page isolates such text. */
export function visible(text: string): string {
  return text.replace(SHOWN_OR_UNSEEN, (found, shown) => (shown === undefined ? escaped(found) : found));
}

/** Escapes invisible characters. Puts text on one line. Text longer than `max` UTF-16 units ends in an ellipsis. */
export function excerpt(text: string, max: number): string {
  const part = text.length > max ? withoutLoneSurrogate(text.slice(0, max)) + "…" : text;
  return visible(part.replace(/[\n\t]/g, (unit) => (unit === "\n" ? "⏎" : " ")));
}

/** Length of the longest escape of a character, in UTF-16 units. */
const ESCAPE_UNITS = 6;

/**
 * Decodes escapes in JSON for display, because some programs escape everything outside ASCII. Does not decode escapes
 * of quotes, control characters or invisible characters.
 */
export function readable(json: string): string {
  return visible(unescaped(json));
}

/** Returns readable JSON on one line. JSON longer than `max` UTF-16 units ends in an ellipsis. */
export function readableExcerpt(json: string, max: number): string {
  const part = json.slice(0, max * ESCAPE_UNITS);
  const text = unescaped(part);
  return excerpt(part.length < json.length && text.length <= max ? text + "…" : text, max);
}

const ESCAPES = /\\[^u]|(?:\\u[0-9a-fA-F]{4})+/g;

function unescaped(json: string): string {
  return json.replace(ESCAPES, (escapes) => {
    if (escapes[1] !== "u") return escapes;
    const text = JSON.parse(`"${escapes}"`) as string;
    return text.replace(/[\u0000-\u009f]/g, escaped);
  });
}

/** Removes a lone high surrogate from the end of truncated text. */
const withoutLoneSurrogate = (text: string) => text.replace(/[\ud800-\udbff]$/, "");
