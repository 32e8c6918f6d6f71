/** Placeholders: the blanks of templates, such as [what you need them for], which must be filled in before a text is used. */

/** Return the blanks of a template: words in square brackets, or {{names}}. */
export const blanksOf = (template: string): string[] => template.match(/\[[^[\]\n]{1,80}\]|\{\{[^{}\n]{1,80}\}\}/g) ?? [];

/** Return the blanks of these templates that still stand in a text, in its order. Brackets that the person wrote are theirs. */
export function unfilled(text: string, templates: readonly string[]): string[] {
  const known = new Set(templates.flatMap(blanksOf));
  return [...new Set(blanksOf(text).filter((blank) => known.has(blank) || blank.startsWith("{{")))];
}

/** Return the sentence that refuses a text with blanks, or null. */
export function refuseUnfilled(text: string, templates: readonly string[]): string | null {
  const blanks = unfilled(text, templates);
  if (blanks.length === 0) return null;
  const names = blanks.length === 1 ? blanks[0] : `${blanks.slice(0, -1).join(", ")} and ${blanks.at(-1)}`;
  return `Fill in ${names}, or take ${blanks.length === 1 ? "it" : "them"} out: the team would not know what is meant.`;
}
