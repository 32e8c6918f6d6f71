/** Formulas: finds TeX in Markdown and puts it where the Markdown parser leaves it alone: into code with a mark. */

/** Characters of the private use area before and after a formula: in a line, and on lines of its own. */
export const IN_LINE = "\ue000";
export const ON_ITS_OWN = "\ue001";

/** Longer texts are data, not prose: to search them would take long. */
const MAX_TEXT = 100_000;
/** Code comes first, so that a dollar sign in it means itself. Lengths are bounded, so that a hostile text cannot make the search slow. */
const PARTS = new RegExp(
  [
    /(?:^|\n) {0,3}(?<fence>`{3,}|~{3,})[\s\S]*?(?:\n {0,3}\k<fence>|$(?![\s\S]))/, // a fenced block
    /(?<!`)(?<ticks>`+)(?!`)[^`](?:[\s\S]{0,1000}?[^`])??\k<ticks>(?!`)/, // code in a line
    /\$\$([^`]{1,2000}?)\$\$/,
    /\\\[([^`]{1,2000}?)\\\]/,
    /\\\(([^`\n]{1,500}?)\\\)/,
    /(?<![\\\w$])\$(?=[^\s$])((?:\\[^\n`]|[^\\\n$`]){1,500}?)(?<=[^\s\\])\$(?![\w$])/,
  ]
    .map((part) => part.source)
    .join("|"),
  "g",
);
/** Two amounts of money are no formula: one has an operator, a command, or is a single letter. */
const IS_FORMULA = /[\\^_=<>{}+*/|]|^[a-zA-Z]'?$/;

/** Return the text with each formula as code between two marks. Money, code and unclosed signs stay as they are. */
export function markFormulas(text: string): string {
  if (text.length > MAX_TEXT || !/\$|\\[([]/.test(text)) return text;
  const plain = text.replaceAll(IN_LINE, "").replaceAll(ON_ITS_OWN, "");
  return plain.replace(PARTS, (whole: string, _fence, _ticks, dollars?: string, brackets?: string, parentheses?: string, single?: string) => {
    const block = dollars ?? brackets;
    if (block !== undefined) return block.trim() === "" ? whole : `\`${ON_ITS_OWN}${oneLine(block)}${ON_ITS_OWN}\``;
    const inline = parentheses ?? (single !== undefined && IS_FORMULA.test(single) ? single : undefined);
    return inline === undefined || inline.trim() === "" ? whole : `\`${IN_LINE}${oneLine(inline)}${IN_LINE}\``;
  });
}

const oneLine = (tex: string): string => tex.replace(/\s*\n\s*/g, " ").trim();

/** Return the TeX of marked code, and whether it stands on lines of its own; null for other code. */
export function formulaOf(code: string): { tex: string; isOnItsOwn: boolean } | null {
  const mark = code[0];
  if ((mark !== IN_LINE && mark !== ON_ITS_OWN) || code.at(-1) !== mark || code.length < 3) return null;
  return { tex: code.slice(1, -1), isOnItsOwn: mark === ON_ITS_OWN };
}
