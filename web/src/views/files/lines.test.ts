import { describe, expect, it } from "vitest";
import { isLarge, ROW_CHARACTERS, splitRows } from "@/views/files/lines";

const texts = (text: string, limit?: number): string[] => splitRows(text, limit).rows.map(({ start, end }) => text.slice(start, end));

describe("the rows of a long text", () => {
  it("are its lines, with their numbers", () => {
    expect(splitRows("a\n\nbc\n")).toEqual({
      rows: [
        { start: 0, end: 1, line: 1 },
        { start: 2, end: 2, line: 2 },
        { start: 3, end: 5, line: 3 },
      ],
      hasMore: false,
    });
  });

  it("cut a line of millions of characters, and lose none of them", () => {
    const text = "x".repeat(2_900_000);
    const { rows } = splitRows(text);
    expect(rows).toHaveLength(2_900);
    expect(rows.filter(({ line }) => line > 0)).toHaveLength(1);
    expect(texts(text).join("")).toBe(text);
  });

  it("never cut a character in two", () => {
    const text = `${"x".repeat(ROW_CHARACTERS - 1)}😀${"y".repeat(10)}`;
    expect(texts(text)).toEqual([`${"x".repeat(ROW_CHARACTERS - 1)}😀`, "y".repeat(10)]);
  });

  it("end at the limit", () => {
    expect(splitRows("\n".repeat(8_000_000), 1_000)).toMatchObject({ hasMore: true, rows: { length: 1_000 } });
  });
});

describe("a text", () => {
  it.each([
    ["short\nlines\n".repeat(100), false],
    ["x".repeat(6_000), true],
    [`${"a line\n".repeat(30_000)}`, true],
    ["", false],
  ])("%# is large if it or one of its lines is long", (text, expected) => {
    expect(isLarge(text)).toBe(expected);
  });
});
