import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import Formula from "@/reading/Formula";

describe("a formula", () => {
  it("is drawn as MathML", () => {
    const drawn = renderToStaticMarkup(<Formula tex="\frac{a}{b} < \sqrt{2}" isOnItsOwn />);
    expect(drawn).toContain("<mfrac><mi>a</mi><mi>b</mi></mfrac>");
    expect(drawn).toContain("&lt;</mo>");
    expect(drawn).toContain("<msqrt>");
  });

  it("that is no TeX is shown as it was written", () => {
    expect(renderToStaticMarkup(<Formula tex="\notacommand{" isOnItsOwn={false} />)).toBe('<code dir="ltr">\\notacommand{</code>');
  });

  it.each(["\\href{javascript:alert(1)}{x}", "\\includegraphics{https://evil.invalid/x.png}", "\\style{position:fixed}{x}", "\\class{fixed inset-0}{x}", "x".repeat(5_000), "\\def\\a{\\a\\a}\\a", "\\text{<img src=x onerror=alert(1)>}", "\\rule{1000em}{1000em}"])(
    "of hostile TeX (%#) runs, loads and covers nothing",
    (tex) => {
      const tags = renderToStaticMarkup(<Formula tex={tex} isOnItsOwn={false} />).match(/<[^>]*>/g) ?? [];
      expect(tags.filter((tag) => /^<\/?(a|img|script|iframe|style|image|form)\b/.test(tag))).toEqual([]);
      // The title says what was written; it is text.
      const attributes = tags.map((tag) => tag.replace(/ title="[^"]*"/, ""));
      expect(attributes.filter((tag) => / on\w+=|href|src=|javascript:|url\(|position|inset/.test(tag))).toEqual([]);
    },
  );
});
