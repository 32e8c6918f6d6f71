// @vitest-environment jsdom
import { render } from "@testing-library/react";
import { createElement } from "react";
import { describe, expect, it, vi } from "vitest";
import CsvTable, { isNumeric, parseCsv } from "@/views/files/CsvTable";

describe("csv", () => {
  it("reads quotes, separators and line ends inside cells", () => {
    expect(parseCsv('a,b\n"x, y","say ""hi""\nthere"\n').rows).toEqual([["a", "b"], ["x, y", 'say "hi"\nthere']]);
  });
  it("reads any line end, and skips a byte order mark", () => {
    expect(parseCsv("\ufeffa,b\r\n1,2\r3,4").rows).toEqual([["a", "b"], ["1", "2"], ["3", "4"]]);
  });
  it("keeps empty cells and drops empty lines", () => {
    expect(parseCsv("a,,c\n\n,,\n").rows).toEqual([["a", "", "c"], ["", "", ""]]);
  });
  it("finds the separator outside quotes", () => {
    expect(parseCsv('"a,b,c";d;e').rows).toEqual([["a,b,c", "d", "e"]]);
    expect(parseCsv("a\tb\tc").rows).toEqual([["a", "b", "c"]]);
    expect(parseCsv("one column").rows).toEqual([["one column"]]);
  });
  it("stops at a limit and reports that there is more", () => {
    expect(parseCsv("a\nb\nc\n", ",", 2)).toEqual({ rows: [["a"], ["b"]], hasMore: true });
    expect(parseCsv("a\nb\n", ",", 2).hasMore).toBe(false);
  });
  it("counts rows and not lines, and says when there are more", () => {
    vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} disconnect() {} });
    const said = (text: string) => {
      const { container, unmount } = render(createElement(CsvTable, { text, separator: "," }));
      const found = [container.querySelector("div.text-xs")!.textContent, container.querySelector("table")!.getAttribute("aria-rowcount")];
      unmount();
      return found;
    };
    expect(said('a,b\n"one\nand two",2\n3,4\n\n')).toEqual(["2 rows", "3"]);
    expect(said("a,b\r\n1,2\r\n")).toEqual(["1 row", "2"]);
    expect(said(`a\n${"1\n".repeat(20_003)}`)).toEqual(["The first 20,000 rowsShow more", "-1"]);
  });
  it("reads a quote without an end", () => {
    expect(parseCsv('a,"b\nc').rows).toEqual([["a", "b\nc"]]);
  });
  it("recognizes columns of numbers", () => {
    const rows = [["1,200", "x"], ["$3.50", "2"], ["", "3"]];
    expect(isNumeric(rows, 0)).toBe(true);
    expect(isNumeric(rows, 1)).toBe(false);
    expect(isNumeric([], 0)).toBe(false);
  });
});
