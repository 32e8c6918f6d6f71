/** Line ends: a text field holds every line end as \n; a file may have \r\n. What is saved has the file's own line ends. */

const LINE_END = /\r\n|\r|\n/g;

/** Return the text as a text field holds it. */
export const asTyped = (text: string): string => text.replace(LINE_END, "\n");

/** Return the typed text with the line ends of the original: lines before and after the changed ones keep theirs, the others get the most frequent one. */
export function withLineEndsOf(original: string, typed: string): string {
  const ends = original.match(LINE_END) ?? [];
  const counts = new Map<string, number>();
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
  const usual = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "\n";
  const lines = typed.split("\n");
  if (counts.size <= 1) return lines.join(usual);
  const before = asTyped(original).split("\n");
  let same = 0;
  while (same < ends.length && same < lines.length - 1 && before[same] === lines[same]) same++;
  let sameAfter = 0;
  while (sameAfter < ends.length - same && sameAfter < lines.length - 1 - same && before.at(-1 - sameAfter) === lines.at(-1 - sameAfter)) sameAfter++;
  // Unchanged lines at the start and at the end keep their own line end; changed lines get the usual one.
  const endAfter = (at: number): string => (at < same ? ends[at]! : lines.length - 1 - at <= sameAfter ? ends[ends.length - (lines.length - 1 - at)]! : usual);
  return lines.map((line, at) => (at < lines.length - 1 ? line + endAfter(at) : line)).join("");
}
