import { describe, expect, it } from "vitest";
import { linkPaths, mayBePath } from "@/conversation/paths";

describe("code", () => {
  it.each(["report.md", "data/table.csv", "nodes/node_1/published/report.md", "./x.py:12", "scratch/", "Umsätze 2026.csv", "memory/index.md"])("%s may name a file", (text) =>
    expect(mayBePath(text)).toBe(true),
  );
  it.each(["x = 1", "../token", "/etc/passwd", "https://evil.invalid/x.md", "javascript:x.md", "a\u202egpj.md", "<b>.md", "numpy.array", "a".repeat(300) + ".md", "//evil.invalid/x.md", "data:x/y.md"])("%s is no name of a file", (text) =>
    expect(mayBePath(text)).toBe(false),
  );
});

describe("prose", () => {
  const links = (text: string): string[] => {
    const tree = { type: "root", children: [{ type: "paragraph", children: [{ type: "text", value: text }] }] };
    linkPaths(tree);
    const parts: { type: string; url?: string; value?: string; children?: { value?: string }[] }[] = tree.children[0]!.children;
    expect(parts.map((part) => part.value ?? part.children?.[0]?.value).join("")).toBe(text);
    return parts.filter(({ type }) => type === "link").map(({ url }) => url!);
  };
  it("has links where it names files", () => {
    expect(links("See report.md and data/table.csv, or src/main.py:12.")).toEqual(["report.md", "data/table.csv", "src/main.py:12"]);
  });
  it("has no links where it names something else", () => {
    expect(links("It takes 2.5 h, e.g. me@example.html or Node.js! www.evil.invalid/x.md and /etc/x.md")).toEqual(["Node.js"]);
  });
});
