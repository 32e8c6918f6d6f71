import { describe, expect, it } from "vitest";
import { citationAt, citationUrl, firstMark, markCitations, type Research } from "@/views/research/citations";

const source = (number: number, evidence: string[]) => ({ number, title: `Page ${number}`, evidence, is_confirmed: number === 1 }) as Research["sources"][number];
const entry = (id: string) => ({ id, quote: `Words of ${id}` }) as Research["evidence"][number];
const research = {
  sources: [source(1, ["e1", "e2"]), source(2, ["e3"])],
  citations: [{ number: 1, evidence: ["e2"], is_confirmed: false }, { number: 2, evidence: ["e3"], is_confirmed: null }],
  evidence: [entry("e1"), entry("e2"), entry("e3")],
} as unknown as Research;

describe("citations", () => {
  it("makes links of the marks of known sources, and of nothing else", () => {
    const tree = {
      type: "root",
      children: [
        { type: "paragraph", children: [{ type: "text", value: "Tall [1][2], see [9]." }] },
        { type: "inlineCode", value: "a[1]" },
        { type: "link", url: "https://a.example", children: [{ type: "text", value: "[1]" }] },
      ],
    };
    markCitations(new Set([1, 2]))()(tree);
    expect(tree.children[0]!.children).toEqual([
      { type: "text", value: "Tall " },
      { type: "link", url: citationUrl(1, 0), children: [{ type: "text", value: "1" }] },
      { type: "link", url: citationUrl(2, 1), children: [{ type: "text", value: "2" }] },
      { type: "text", value: ", see [9]." },
    ]);
    expect(tree.children[2]!.children).toEqual([{ type: "text", value: "[1]" }]);
  });

  it("shows the quotations of the mark, else all of its source", () => {
    expect(citationAt(citationUrl(1, 0), research)?.evidence.map((one) => one.id)).toEqual(["e2"]);
    expect(citationAt(citationUrl(1, 7), research)?.evidence.map((one) => one.id)).toEqual(["e1", "e2"]);
    expect(citationAt(citationUrl(2, 0), research)?.evidence.map((one) => one.id)).toEqual(["e3"]);
    expect(citationAt(citationUrl(9, 0), research)).toBeNull();
    expect(citationAt("https://a.example", research)).toBeNull();
  });

  it("tells of a mark whether its own claim is confirmed, else whether its source is", () => {
    expect([citationUrl(1, 0), citationUrl(1, 7), citationUrl(2, 1)].map((url) => citationAt(url, research)?.isConfirmed)).toEqual([false, true, false]);
  });

  it("finds the place of a part of the report by its marks", () => {
    expect(firstMark("Tall [1]. Old [2].", research)).toBe(0);
    expect(firstMark("Old [2], see [9].", research)).toBe(1);
    expect(firstMark("Old [2]. Tall [1].", research)).toBe(-1);
  });
});
