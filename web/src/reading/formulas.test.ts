import { describe, expect, it } from "vitest";
import { formulaOf, IN_LINE, markFormulas, ON_ITS_OWN } from "@/reading/formulas";

const inline = (tex: string): string => `\`${IN_LINE}${tex}${IN_LINE}\``;
const block = (tex: string): string => `\`${ON_ITS_OWN}${tex}${ON_ITS_OWN}\``;

describe("formulas", () => {
  it.each([
    ["so $a^2 + b^2 = c^2$ holds", `so ${inline("a^2 + b^2 = c^2")} holds`],
    ["with $x$ and $y_1$", `with ${inline("x")} and ${inline("y_1")}`],
    ["\\(\\frac{1}{2}\\)", inline("\\frac{1}{2}")],
    ["$$\\int_0^1 x\\,dx$$", block("\\int_0^1 x\\,dx")],
    ["\\[\na = b\n\\]", block("a = b")],
    ["$$\na\n\nb = c\n$$\nend", `${block("a b = c")}\nend`],
  ])("of %s are marked", (text, expected) => expect(markFormulas(text)).toBe(expected));

  it.each([
    "It costs $5, and then $10 more.",
    "between $5 and $10",
    "$5-$10",
    "$HOME and $PATH",
    "`$a^2$` is code",
    "```\n$a^2 = b$\n```",
    "~~~sh\necho $A=$B\n~~~\n",
    "an unclosed $a^2",
    "\\$a^2\\$",
    "$$",
    "$ a $",
  ])("are not found in %s", (text) => expect(markFormulas(text)).toBe(text));

  it("are read back from their marks", () => {
    expect(formulaOf(`${IN_LINE}x${IN_LINE}`)).toEqual({ tex: "x", isOnItsOwn: false });
    expect(formulaOf(`${ON_ITS_OWN}x${ON_ITS_OWN}`)).toEqual({ tex: "x", isOnItsOwn: true });
    expect(formulaOf("x")).toBeNull();
  });
});
