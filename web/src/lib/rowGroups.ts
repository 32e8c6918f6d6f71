/** Row groups: which rows a virtualized list renders. */
import type { Range } from "@tanstack/react-virtual";

/** Rows that are added and removed together. */
const GROUP = 4;

/**
 * Return the indexes of the visible rows and some around them, in whole groups.
 *
 * With low rows, each frame of a scroll would add one row and remove one, and a render, a style recalculation and a
 * layout cost much more than the row itself. In groups, most frames change nothing.
 */
export function rowsInGroups({ startIndex, endIndex, overscan, count }: Range): number[] {
  const first = Math.max(0, Math.floor((startIndex - overscan) / GROUP) * GROUP);
  const end = Math.min(count, Math.ceil((endIndex + 1 + overscan) / GROUP) * GROUP);
  return Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
}

/** Add an index to the indexes of rows, in order. */
export function withRow(rows: readonly number[], index: number): number[] {
  return rows.includes(index) ? [...rows] : [...rows, index].sort((a, b) => a - b);
}
