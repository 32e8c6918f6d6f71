/** Visible: text of others, with each character that a screen hides or obeys told apart from what it draws. */

/** Text as it is, or one hidden character with the code point that stands for it. */
export type Part = { text: string; code: null } | { text: string; code: string };

/**
 * Controls, formats (bidirectional marks, zero-width characters), surrogates, unassigned code points, separators other
 * than a space, what draws nothing; and the bracket that begins a code point, so that what is shown means one text only.
 */
const HIDDEN = /[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
/** Whether there is anything to look for at all: most texts have nothing hidden. */
const SUSPECT = /(?![ \n\t])[\p{C}\p{Z}\p{DI}\u2800\u27E8\u{16FE4}\u{1D159}]/u;
const KEPT = new Set([" ", "\n", "\t"]);
/** What joins pictures and chooses their look: between pictures it hides nothing. */
const PICTURES = /\p{Extended_Pictographic}(?:\uFE0F|\u200D(?=\p{Extended_Pictographic})|[\u{1F3FB}-\u{1F3FF}]|\p{Extended_Pictographic})*/uy;

const codeOf = (character: string): string => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** `pictures`: emoji are shown as they are. A call to approve has none that count as harmless. */
export function parts(text: string, { pictures = false } = {}): Part[] {
  if (!SUSPECT.test(text)) return text === "" ? [] : [{ text, code: null }];
  const found: Part[] = [];
  let plain = "";
  for (let at = 0; at < text.length; ) {
    PICTURES.lastIndex = at;
    const picture = pictures ? PICTURES.exec(text)?.[0] : undefined;
    const character = picture ?? String.fromCodePoint(text.codePointAt(at)!);
    const isWhole = picture !== undefined || KEPT.has(character) || !HIDDEN.test(character);
    if (isWhole) plain += character;
    else {
      if (plain) found.push({ text: plain, code: null });
      found.push({ text: character, code: codeOf(character) });
      plain = "";
    }
    at += character.length;
  }
  if (plain) found.push({ text: plain, code: null });
  return found;
}

/** For places that show plain text alone, such as a notification. */
export const visible = (text: string): string => parts(text).map((part) => part.code ?? part.text).join("");
