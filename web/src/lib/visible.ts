/**
 * Visible: untrusted text with its hidden characters made visible.
 *
 * A model may hide words from the person who approves a call: with direction marks, zero-width characters or
 * control characters. Each of them is shown as its code point instead.
 */

/** A piece of normal text, or one hidden character with the code point to show for it. */
export type Part = { text: string; code: null } | { text: string; code: string };

/**
 * Control characters, format characters (direction marks, zero-width characters), lone surrogates, unassigned code
 * points, separators other than a space, characters without a glyph; and the bracket ⟨ that begins a shown code
 * point: otherwise a text could contain "⟨U+202E⟩" and look like another text.
 */
const HIDDEN_CHARACTER = /[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
/** A quick test for the whole text: most texts have no hidden character. */
const ANY_HIDDEN = /(?![ \n\t])[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
const SHOWN_WHITESPACE = new Set([" ", "\n", "\t"]);
/** An emoji with its joiners and variation selectors. Between emoji these characters hide nothing. */
const EMOJI_SEQUENCE = /\p{Extended_Pictographic}(?:\uFE0F|\u200D(?=\p{Extended_Pictographic})|[\u{1F3FB}-\u{1F3FF}]|\p{Extended_Pictographic})*/uy;

const codeOf = (character: string): string => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** Split a text into normal pieces and hidden characters. `keepEmoji` keeps emoji sequences whole; the arguments of a call must be split without it. */
export function splitHidden(text: string, { keepEmoji = false } = {}): Part[] {
  if (!ANY_HIDDEN.test(text)) return text === "" ? [] : [{ text, code: null }];
  const parts: Part[] = [];
  let pending = "";
  for (let index = 0; index < text.length; ) {
    EMOJI_SEQUENCE.lastIndex = index;
    const emoji = keepEmoji ? EMOJI_SEQUENCE.exec(text)?.[0] : undefined;
    const character = emoji ?? String.fromCodePoint(text.codePointAt(index)!);
    const isShown = emoji !== undefined || SHOWN_WHITESPACE.has(character) || !HIDDEN_CHARACTER.test(character);
    if (isShown) pending += character;
    else {
      if (pending) parts.push({ text: pending, code: null });
      parts.push({ text: character, code: codeOf(character) });
      pending = "";
    }
    index += character.length;
  }
  if (pending) parts.push({ text: pending, code: null });
  return parts;
}

/** Return the text with code points for hidden characters, for places that show plain text, such as a notification. */
export const revealHidden = (text: string): string => splitHidden(text).map((part) => part.code ?? part.text).join("");
