/** Visible: text of others, with each character that a screen hides or obeys told apart from what it draws. */

/** Text as it is, or one hidden character with the code point that stands for it. */
export type Part = { text: string; code: null } | { text: string; code: string };

/**
 * Controls, formats (bidirectional marks, zero-width characters), surrogates, unassigned code points, separators other
 * than a space, what draws nothing; and the bracket that begins a code point, so that what is shown means one text only.
 */
const HIDDEN_CHARACTER = /[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
/** Whether there is anything to look for at all: most texts have nothing hidden. */
const ANY_HIDDEN = /(?![ \n\t])[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
const SHOWN_WHITESPACE = new Set([" ", "\n", "\t"]);
/** What joins pictures and chooses their look: between pictures it hides nothing. */
const EMOJI_SEQUENCE = /\p{Extended_Pictographic}(?:\uFE0F|\u200D(?=\p{Extended_Pictographic})|[\u{1F3FB}-\u{1F3FF}]|\p{Extended_Pictographic})*/uy;

const codeOf = (character: string): string => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** `pictures`: emoji are shown as they are. A call to approve has none that count as harmless. */
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

/** For places that show plain text alone, such as a notification. */
export const revealHidden = (text: string): string => splitHidden(text).map((part) => part.code ?? part.text).join("");
