import { describe, expect, it } from "vitest";
import { splitPieces } from "@/reading/pieces";
import { splitHidden, splitSuspect } from "@/reading/visible";

const shown = (pieces: ReturnType<typeof splitPieces>) => pieces.map((parts) => parts.map((part) => part.code ?? part.text).join(""));

describe("pieces", () => {
  it.each(["", "ls", "\n".repeat(100), "x".repeat(30_000), "漢".repeat(4_000), "😀".repeat(2_000), "\u200B".repeat(500), `a${"\u0301".repeat(5_000)}`, "two words\n".repeat(10_000)])("are together the same text (%#)", (text) => {
    const parts = splitSuspect(text);
    const pieces = splitPieces(parts);
    expect(pieces.flat().map((part) => part.text).join("")).toBe(text);
    for (const piece of shown(pieces)) {
      expect(piece.length).toBeLessThan(600);
      expect(piece.split("\n").length).toBeLessThan(15);
      expect(piece).not.toMatch(/\p{Cs}/u);
    }
  });

  it("end at the end of a line or a word, if one is near", () => {
    const words = shown(splitPieces(splitSuspect(Array.from({ length: 500 }, (_, at) => `word${at}`).join(" "))));
    expect(words.slice(0, -1).every((piece) => piece.endsWith(" "))).toBe(true);
    expect(shown(splitPieces(splitSuspect("echo 1\n".repeat(30)))).map((piece) => piece.split("\n").length - 1)).toEqual([11, 11, 8]);
  });

  it("do not part what is drawn as one glyph", () => {
    const family = "👩‍👩‍👧‍👦";
    const pieces = shown(splitPieces(splitHidden(family.repeat(100), { keepEmoji: true })));
    expect(pieces.length).toBeGreaterThan(1);
    for (const piece of pieces) expect(piece.replaceAll(family, "")).toBe("");
  });

  it("hold what is shown for hidden characters, which is longer than these", () => {
    expect(splitPieces(splitSuspect("\u202E".repeat(120)))).toHaveLength(2);
  });
});
