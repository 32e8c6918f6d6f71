import { describe, expect, it } from "vitest";
import { citationAt, citationUrl, markCitations, type Research } from "@/views/research/citations";

const source = (number: number, evidence: string[]) => ({ number, title: `Page ${number}`, evidence }) as Research["sources"][number];
const entry = (id: string) => ({ id, quote: `Words of ${id}` }) as Research["evidence"][number];
const research = {
  sources: [source(1, ["e1", "e2"]), source(2, ["e3"])],
  citations: [{ number: 1, evidence: ["e2"] }, { number: 2, evidence: ["e3"] }],
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
});
