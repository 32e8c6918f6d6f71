import { describe, expect, it } from "vitest";
import { type DiffLine, diffLines, withContext } from "@/lib/diff";

const marks = (lines: readonly (DiffLine | null)[]): string[] => lines.map((line) => (line === null ? "…" : `${{ same: " ", removed: "-", added: "+" }[line.kind]}${line.text}`));

describe("a diff", () => {
  it("names the lines that were added and removed", () => {
    expect(marks(diffLines("a\nb\nc\n", "a\nx\nc\nd\n"))).toEqual([" a", "-b", "+x", " c", "+d"]);
  });

  it("of equal texts has no changes", () => {
    expect(marks(diffLines("a\nb", "a\nb"))).toEqual([" a", " b"]);
    expect(diffLines("", "")).toEqual([]);
  });

  it("of an empty text adds or removes every line", () => {
    expect(marks(diffLines("", "a\nb"))).toEqual(["+a", "+b"]);
    expect(marks(diffLines("a\nb", ""))).toEqual(["-a", "-b"]);
  });

  it("numbers the lines of both texts", () => {
    expect(diffLines("a\nb", "b\nc").map(({ before, after }) => [before, after])).toEqual([
      [1, null],
      [2, 1],
      [null, 2],
    ]);
  });

  it("always leads from the one text to the other", () => {
    let seed = 7;
    const random = (n: number): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
    for (let round = 0; round < 300; round++) {
      const text = (): string => Array.from({ length: random(9) }, () => "abc"[random(3)]!).join("\n");
      const [before, after] = [text(), text()];
      const lines = diffLines(before, after);
      const side = (kind: DiffLine["kind"]): string => lines.filter((line) => line.kind === "same" || line.kind === kind).map((line) => line.text).join("\n");
      expect([side("removed"), side("added")]).toEqual([before, after]);
    }
  });

  it("of texts with thousands of different lines ends", () => {
    const before = Array.from({ length: 4_000 }, (_, at) => `old ${at}`).join("\n");
    const after = Array.from({ length: 4_000 }, (_, at) => `new ${at}`).join("\n");
    expect(diffLines(before, after)).toHaveLength(8_000);
  });

  it("shows only the lines around changes", () => {
    const before = Array.from({ length: 20 }, (_, at) => `${at}`).join("\n");
    expect(marks(withContext(diffLines(before, before.replace("\n9\n", "\nnine\n")), 1))).toEqual(["…", " 8", "-9", "+nine", " 10", "…"]);
  });
});
