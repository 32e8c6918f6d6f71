/** PlainText: Markdown as one piece of plain text, for previews. Names such as `my_file.py` keep their characters. */

const INLINE_CODE = /(`+)([\s\S]*?)\1/;
/** Emphasis with asterisks, or with underscores around whole words: an underscore inside a word belongs to a name. */
const STARS = /(\*{1,3})(?=\S)([^*]*?\S)\1/g;
const UNDERSCORES = /(?<![\p{L}\p{N}_])_(?=[^\s_])([^_]*[^\s_])_(?![\p{L}\p{N}_])/gu;
const LINE_START = /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+)+/gm;
const TABLE_RULE = /^[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$/gm;
const FENCE = /^[ \t]*(?:`{3,}|~{3,})[^\n`]*$/gm;

function withoutMarks(text: string): string {
  return text
    .replace(TABLE_RULE, "")
    .replace(LINE_START, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(STARS, "$2")
    .replace(UNDERSCORES, "$1")
    .replace(/[ \t]*\|[ \t]*/g, " ");
}

/** Emphasis around whole words: an asterisk inside a number or a word may be meant as it is. */
const EMPHASIS = /(?<![\p{L}\p{N}*])(\*{1,3})(?=[^\s*])([^*]*[^\s*])\1(?![\p{L}\p{N}*])/gu;
const HEADING = /^[ \t]*#{1,6}[ \t]+/gm;

/** Return a text without the marks of emphasis, headings and code. All else stays, so that a person can decide by it. */
export function withoutEmphasis(text: string): string {
  const pieces = text.split(/(`+)([^`]+)\1/);
  let shown = "";
  for (let at = 0; at < pieces.length; at += 3) shown += pieces[at]!.replace(HEADING, "").replace(EMPHASIS, "$2").replace(UNDERSCORES, "$1") + (pieces[at + 2] ?? "");
  return shown;
}

/** Return the Markdown without its marks. Code keeps every character. */
export function plainText(markdown: string): string {
  const pieces = markdown.replace(FENCE, "").split(new RegExp(INLINE_CODE.source));
  // `split` with two groups gives: text, backticks, code, text, backticks, code, …
  let shown = "";
  for (let at = 0; at < pieces.length; at += 3) shown += withoutMarks(pieces[at]!) + (pieces[at + 2] ?? "");
  return shown.replace(/\n{2,}/g, "\n").trim();
}
