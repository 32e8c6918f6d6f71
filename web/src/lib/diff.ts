/** Diff: the lines that differ between two texts, as Myers' algorithm finds them. */

export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
  /** The number of the line in the old and in the new text, from 1; null where it is not in it. */
  before: number | null;
  after: number | null;
}

/** Texts that differ in more lines than this are shown as replaced as a whole: the search would take seconds. */
const MAX_EDITS = 1_500;

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

export function diffLines(before: string, after: string): DiffLine[] {
  const old = linesOf(before);
  const now = linesOf(after);
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const oldPart = old.slice(start, old.length - end);
  const nowPart = now.slice(start, now.length - end);
  const lines: DiffLine[] = [];
  let at = 0;
  let to = 0;
  const push = (kind: DiffLine["kind"]): void => {
    lines.push({ kind, text: kind === "added" ? now[to]! : old[at]!, before: kind === "added" ? null : at + 1, after: kind === "removed" ? null : to + 1 });
    if (kind !== "added") at++;
    if (kind !== "removed") to++;
  };
  for (let n = 0; n < start; n++) push("same");
  for (const kind of edits(oldPart, nowPart)) push(kind);
  for (let n = 0; n < end; n++) push("same");
  return lines;
}

/** Return the steps that turn one list into the other. */
function edits(old: readonly string[], now: readonly string[]): DiffLine["kind"][] {
  const trace: Int32Array[] = [];
  const most = Math.min(old.length + now.length, MAX_EDITS);
  const middle = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  for (let depth = 0; depth <= most; depth++) {
    trace.push(furthest.slice());
    for (let k = -depth; k <= depth; k += 2) {
      const isDown = k === -depth || (k !== depth && furthest[middle + k - 1]! < furthest[middle + k + 1]!);
      let x = isDown ? furthest[middle + k + 1]! : furthest[middle + k - 1]! + 1;
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++;
      furthest[middle + k] = x;
      if (x >= old.length && x - k >= now.length) return walkBack(trace, old.length, now.length, middle);
    }
  }
  return [...old.map(() => "removed" as const), ...now.map(() => "added" as const)];
}

function walkBack(trace: readonly Int32Array[], oldLength: number, nowLength: number, middle: number): DiffLine["kind"][] {
  const steps: DiffLine["kind"][] = [];
  let x = oldLength;
  let y = nowLength;
  const goBackTo = (toX: number, toY: number): void => {
    for (; x > toX && y > toY; x--, y--) steps.push("same");
  };
  for (let depth = trace.length - 1; depth > 0; depth--) {
    const furthest = trace[depth]!;
    const k = x - y;
    const isDown = k === -depth || (k !== depth && furthest[middle + k - 1]! < furthest[middle + k + 1]!);
    const fromK = isDown ? k + 1 : k - 1;
    const fromX = furthest[middle + fromK]!;
    goBackTo(fromX, fromX - fromK);
    steps.push(isDown ? "added" : "removed");
    x = fromX;
    y = fromX - fromK;
  }
  goBackTo(0, 0);
  return steps.reverse();
}

/** Return the lines around changes, with null for each gap of lines that are the same in both texts. */
export function withContext(lines: readonly DiffLine[], context = 3): (DiffLine | null)[] {
  const shown: (DiffLine | null)[] = [];
  let last = -1;
  lines.forEach((line, at) => {
    const isNear = lines.slice(Math.max(0, at - context), at + context + 1).some((one) => one.kind !== "same");
    if (!isNear) return;
    if (at > last + 1) shown.push(null);
    shown.push(line);
    last = at;
  });
  if (last >= 0 && last < lines.length - 1) shown.push(null);
  return shown;
}
