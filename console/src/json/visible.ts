/**
 * Characters that would hide, reorder or break text on a page: controls, marks of direction, line separators, lone surrogates,
 * and all that browsers show nothing for, such as spaces without a width, tags and variation selectors.
 */
const UNSEEN = String.raw`[\p{Default_Ignorable_Code_Point}\p{Cs}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb]`;

/**
 * An emoji with the marks that choose its form, or several that are joined to one. They may have a selector where it changes
 * the form, and a joiner between two emoji; anywhere else these hide something.
 */
const EMOJI = String.raw`\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{Emoji_Modifier}?`;
const SHOWN = String.raw`${EMOJI}(?:\u200d${EMOJI})*|[0-9#*]\ufe0f\u20e3`;

const SHOWN_OR_UNSEEN = new RegExp(`(${SHOWN})|${UNSEEN}`, "gu");

const escaped = (character: string) => {
  const code = character.codePointAt(0)!;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : "\\u" + code.toString(16).padStart(4, "0");
};

/** The text with escapes for such characters. Text that runs from right to left stays; the page isolates it. */
export function visible(text: string): string {
  return text.replace(SHOWN_OR_UNSEEN, (found, shown) => (shown === undefined ? escaped(found) : found));
}

/** The same in one line, cut after `max` units, with a mark for the rest. */
export function excerpt(text: string, max: number): string {
  const part = text.length > max ? whole(text.slice(0, max)) + "…" : text;
  return visible(part.replace(/[\n\t]/g, (unit) => (unit === "\n" ? "⏎" : " ")));
}

/** Units of a text that its longest escape has for one character. */
const ESCAPE_UNITS = 6;

/**
 * JSON text for readers: characters instead of their escapes, as some programs write all text beyond ASCII with them. Escapes of
 * quotes, controls and marks that hide text stay.
 */
export function readable(json: string): string {
  return visible(unescaped(json));
}

/** The same in one line, cut after `max` units, with a mark for the rest. */
export function readableExcerpt(json: string, max: number): string {
  const part = json.slice(0, max * ESCAPE_UNITS);
  const text = unescaped(part);
  return excerpt(part.length < json.length && text.length <= max ? text + "…" : text, max);
}

/** An escaped backslash or sign, or a run of escapes of characters, which may be halves of one. */
const ESCAPES = /\\[^u]|(?:\\u[0-9a-fA-F]{4})+/g;

function unescaped(json: string): string {
  return json.replace(ESCAPES, (escapes) => {
    if (escapes[1] !== "u") return escapes;
    const text = JSON.parse(`"${escapes}"`) as string;
    // those of ASCII and of controls have a meaning in JSON
    return text.replace(/[\u0000-\u009f]/g, escaped);
  });
}

/** A text that was cut, without the first half of a character at its end. */
const whole = (text: string) => text.replace(/[\ud800-\udbff]$/, "");
