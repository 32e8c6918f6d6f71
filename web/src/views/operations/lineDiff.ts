/** Line diff: which lines of a text were removed and added. */

export interface DiffLine {
  mark: " " | "-" | "+";
  text: string;
}

/** Above this many comparisons the changed part is shown as removed and added as a whole. */
const MOST_CELLS = 4_000_000;

/** Return all lines of both texts in order, each marked as kept, removed or added. */
export function lineDiff(before: string, now: string): DiffLine[] {
  const old = before.split("\n");
  const made = now.split("\n");
  let start = 0;
  while (start < old.length && start < made.length && old[start] === made[start]) start++;
  let end = 0;
  while (end < old.length - start && end < made.length - start && old[old.length - 1 - end] === made[made.length - 1 - end]) end++;
  const kept = (lines: string[]): DiffLine[] => lines.map((text) => ({ mark: " ", text }));
  return [...kept(old.slice(0, start)), ...changed(old.slice(start, old.length - end), made.slice(start, made.length - end)), ...kept(old.slice(old.length - end))];
}

function changed(old: string[], made: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ mark: "-", text });
  const added = (text: string): DiffLine => ({ mark: "+", text });
  if (old.length * made.length > MOST_CELLS) return [...old.map(removed), ...made.map(added)];
  // The length of the longest common subsequence of the rest of both texts, for each pair of places.
  const width = made.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = made.length - 1; j >= 0; j--) common[i * width + j] = old[i] === made[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < made.length) {
    if (i < old.length && j < made.length && old[i] === made[j]) {
      lines.push({ mark: " ", text: old[i]! });
      i++;
      j++;
    } else if (i < old.length && (j === made.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) lines.push(removed(old[i++]!));
    else lines.push(added(made[j++]!));
  }
  return lines;
}
