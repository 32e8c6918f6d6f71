import { describe, expect, it } from "vitest";
import { otherScripts, splitHidden, splitSuspect, revealHidden } from "@/reading/visible";

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

  it("shows letters and signs in disguise as code points, and only those", () => {
    const shown = (text: string) => splitSuspect(text).map((part) => part.code ?? part.text).join("");
    expect(shown("curl https://\u0430pple.com/p\u0430y\u2215x\u037E r\uFF4D")).toBe("curl https://⟨U+0430⟩pple.com/p⟨U+0430⟩y⟨U+2215⟩x⟨U+037E⟩ r⟨U+FF4D⟩");
    expect(shown("echo привет, это 漢字とAPI接口 naïve „so“ – …")).toBe("echo привет, это 漢字とAPI接口 naïve „so“ – …");
    expect(otherScripts("echo привет αβ")).toEqual(["Cyrillic", "Greek"]);
    expect(otherScripts("echo naïve 漢字")).toEqual([]);
  });

  it("shows spaces at the end of a line, with their number", () => {
    const shown = (text: string) => splitSuspect(text).map((part) => part.code ?? part.text).join("");
    expect(shown("a \\ \nb  \t\n  c\u200b \nd   ")).toBe("a \\⟨U+0020⟩\nb⟨U+0020×2⟩⟨U+0009⟩\n  c⟨U+200B⟩⟨U+0020⟩\nd⟨U+0020×3⟩");
    expect(shown(`a${" ".repeat(100_000)}b`)).toBe(`a${" ".repeat(100_000)}b`);
  });
});
