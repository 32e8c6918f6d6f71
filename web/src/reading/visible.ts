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

/** Scripts with letters that look like Latin ones, such as the Cyrillic “а”. */
const LOOKALIKE_SCRIPTS = ["Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Lisu", "Deseret", "Osage", "Old_Italic", "Tifinagh", "Canadian_Aboriginal"] as const;
const LOOKALIKE_LETTER = new RegExp(`[${LOOKALIKE_SCRIPTS.map((script) => `\\p{Script=${script}}`).join("")}]`, "u");
/** Letters and digits of other alphabets for the same Latin letters, and signs that look like a sign with a meaning in commands: ; / : ! | \\ . */
const DISGUISED_CHARACTER = /[\uFF10-\uFF19\uFF21-\uFF3A\uFF41-\uFF5A\u{1D400}-\u{1D7FF}\u{1F130}-\u{1F149}\u037E\u2044\u2215\u29F8\u2236\uA789\u01C3\u01C0\u2223\uFE68\u2216\u29F5\u2024\u0589]/u;
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
const ANY_SUSPECT = new RegExp(`${LOOKALIKE_LETTER.source}|${DISGUISED_CHARACTER.source}|[ \\t](?=\\n|$)`, "u");
/** It is tried at the beginning of a run only: a text may hold 100,000 spaces in a row. */
const SPACES_AT_LINE_END = /(?<![ \t])[ \t]+(?=\n|$)/g;

const codeOf = (character: string, count = 1): string => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}${count > 1 ? `×${count}` : ""}⟩`;

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

/**
 * Split the text of a command or of another argument. Besides hidden characters, these are shown as code points: letters of
 * another script inside a Latin word, letters and signs in disguise, and spaces at the end of a line. A word that is
 * written in another script from end to end stays as it is; `otherScripts` names its script.
 */
export function splitSuspect(text: string): Part[] {
  const parts = splitHidden(text);
  if (!ANY_SUSPECT.test(text)) return parts;
  return parts.flatMap((part, at) => (part.code === null ? splitVisible(part.text, at === parts.length - 1) : [part]));
}

function splitVisible(text: string, isEnd: boolean): Part[] {
  const codes = new Map<number, { length: number; code: string }>();
  for (const word of text.matchAll(WORD)) {
    const isMixed = /[A-Za-z]/.test(word[0]);
    let at = word.index;
    for (const letter of word[0]) {
      if (DISGUISED_CHARACTER.test(letter) || (isMixed && LOOKALIKE_LETTER.test(letter))) codes.set(at, { length: letter.length, code: codeOf(letter) });
      at += letter.length;
    }
  }
  for (const sign of text.matchAll(new RegExp(DISGUISED_CHARACTER.source, "gu"))) codes.set(sign.index, { length: sign[0].length, code: codeOf(sign[0]) });
  for (const run of text.matchAll(SPACES_AT_LINE_END)) {
    // A text that a hidden character follows does not end here.
    if (run.index + run[0].length === text.length && !isEnd) continue;
    for (const { 0: same, index } of run[0].matchAll(/ +|\t+/g)) codes.set(run.index + index, { length: same.length, code: codeOf(same, same.length) });
  }
  const parts: Part[] = [];
  let from = 0;
  for (const [at, { length, code }] of [...codes].sort(([a], [b]) => a - b)) {
    if (at > from) parts.push({ text: text.slice(from, at), code: null });
    parts.push({ text: text.slice(at, at + length), code });
    from = at + length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), code: null });
  return parts;
}

/** Return the scripts of a text that have letters which look like Latin ones. */
export const otherScripts = (text: string): string[] =>
  LOOKALIKE_LETTER.test(text) ? LOOKALIKE_SCRIPTS.filter((script) => new RegExp(`\\p{Script=${script}}`, "u").test(text)).map((script) => script.replace("_", " ")) : [];

/** Return the text with code points for hidden characters, for places that show plain text, such as a notification. */
export const revealHidden = (text: string): string => splitHidden(text).map((part) => part.code ?? part.text).join("");

/** As `revealHidden`, for the text of a call: what looks like something else is shown as code points, too. */
export const revealSuspect = (text: string): string => splitSuspect(text).map((part) => part.code ?? part.text).join("");
