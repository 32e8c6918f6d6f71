/** Lines: splits a long text into rows that can be drawn one by one, however long its lines are. */

/** Longer lines are drawn as several rows: a browser takes seconds to lay out a line of a million characters. */
export const ROW_CHARACTERS = 1_000;
/** More rows than anybody scrolls through. The download has the rest. */
export const MAX_ROWS = 200_000;

export interface Row {
  /** Where the row begins and ends in the text. */
  start: number;
  end: number;
  /** The number of its line, from 1; 0 for a row that continues the line of the row above it. */
  line: number;
}

/** Whether a text is too long for one element: by its length, or because one of its lines is. */
export function isLarge(text: string): boolean {
  if (text.length > 150_000) return true;
  let start = 0;
  while (start < text.length) {
    const end = text.indexOf("\n", start);
    if ((end < 0 ? text.length : end) - start > 5_000) return true;
    if (end < 0) return false;
    start = end + 1;
  }
  return false;
}

/** Return the first `limit` rows of a text, and whether there are more. */
export function splitRows(text: string, limit = MAX_ROWS): { rows: Row[]; hasMore: boolean } {
  const rows: Row[] = [];
  let line = 1;
  let start = 0;
  while (start < text.length) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    let from = start;
    do {
      if (rows.length >= limit) return { rows, hasMore: true };
      const to = rowEnd(text, from, end);
      rows.push({ start: from, end: to, line: from === start ? line : 0 });
      from = to;
    } while (from < end);
    line++;
    start = end + 1;
  }
  return { rows, hasMore: false };
}

/** Return where the row that starts at `from` ends; never between the two halves of a character. */
function rowEnd(text: string, from: number, end: number): number {
  const to = Math.min(from + ROW_CHARACTERS, end);
  const isHalf = to < end && /[\ud800-\udbff]/.test(text[to - 1]!);
  return isHalf ? to + 1 : to;
}
