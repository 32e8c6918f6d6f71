import { describe, expect, it } from "vitest";
import { splitHidden, revealHidden } from "@/lib/visible";

describe("visible text", () => {
  it("shows hidden and control characters as code points", () => {
    expect(revealHidden("a\u202Eb\u200Bc\u0000\u001B[31m\rd\u00A0e\u2028f\uFEFFg\u3164h\u2800i\u{E0041}j\u{E0101}")).toBe(
      "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩⟨U+001B⟩[31m⟨U+000D⟩d⟨U+00A0⟩e⟨U+2028⟩f⟨U+FEFF⟩g⟨U+3164⟩h⟨U+2800⟩i⟨U+E0041⟩j⟨U+E0101⟩",
    );
  });

  it("does not change visible text", () => {
    const plain = "ls -l <!-- ; x # --> | head\n\t```**b**``` é ß 漢字 हिन्दी \\u202e";
    expect(revealHidden(plain)).toBe(plain);
  });

  it("shows different texts differently", () => {
    expect(revealHidden("⟨U+202E⟩")).toBe("⟨U+27E8⟩U+202E⟩");
    expect(revealHidden("\uD800")).toBe("⟨U+D800⟩");
  });

  it("keeps emoji in questions, and shows their code points in calls", () => {
    const words = "⚠️ Delete it? 👩‍💻 👍🏽";
    expect(splitHidden(words, { keepEmoji: true })).toEqual([{ text: words, code: null }]);
    expect(revealHidden("⚠️")).toBe("⚠⟨U+FE0F⟩");
    expect(splitHidden("a\uFE0F⚠\u200D b", { keepEmoji: true }).map((part) => part.code)).toEqual([null, "⟨U+FE0F⟩", null, "⟨U+200D⟩", null]);
  });
});
