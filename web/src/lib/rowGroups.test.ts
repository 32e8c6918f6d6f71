import { expect, test } from "vitest";
import { rowsInGroups, withRow } from "@/lib/rowGroups";

const rows = (startIndex: number, endIndex: number, count = 100) => {
  const indexes = rowsInGroups({ startIndex, endIndex, overscan: 2, count });
  return [indexes[0], indexes.at(-1), indexes.length];
};

test("A scroll by one row changes the rendered rows only at the edge of a group", () => {
  expect(rows(10, 20)).toEqual([8, 23, 16]);
  expect(rows(11, 21)).toEqual([8, 23, 16]);
  expect(rows(12, 22)).toEqual([8, 27, 20]);
});

test("Only rows that exist are rendered", () => {
  expect(rows(0, 5)).toEqual([0, 7, 8]);
  expect(rows(90, 99)).toEqual([88, 99, 12]);
  expect(rowsInGroups({ startIndex: 0, endIndex: 0, overscan: 2, count: 0 })).toEqual([]);
});

test("A row is rendered in its place, also when it is out of sight", () => {
  expect([withRow([4, 5], 5), withRow([4, 5], 1), withRow([4, 5], 9)]).toEqual([[4, 5], [1, 4, 5], [4, 5, 9]]);
});
