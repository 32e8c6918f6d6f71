/** Goal text: the goal of the demo, and the blanks of templates, such as [what you need them for], which must be filled in before a text is used. */

/** The goal of a demo team. The scripted demo answers this goal with a whole story: `providers/demo_story.py` recognises it by its beginning. */
export const DEMO_GOAL = "Show me how a team works: plan a weekend trip.\nHire a teammate for the packing list, ask me where to go, and write trip.md.";

/** Return the name of a demo team that no team has yet: Demo, Demo 2, … */
export function demoName(taken: readonly string[]): string {
  const names = new Set(taken.map((name) => name.toLowerCase()));
  for (let n = 1; ; n++) {
    const name = n === 1 ? "Demo" : `Demo ${n}`;
    if (!names.has(name.toLowerCase())) return name;
  }
}

/** Return the blanks of a template: words in square brackets, or {{names}}. */
const blanksOf = (template: string): string[] => template.match(/\[[^[\]\n]{1,80}\]|\{\{[^{}\n]{1,80}\}\}/g) ?? [];

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
