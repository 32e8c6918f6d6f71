import { describe, expect, it } from "vitest";
import { plainText, withoutEmphasis } from "@/reading/plainText";

describe("plain text of Markdown", () => {
  it("keeps the underscores of names", () => {
    expect(plainText("Wrote my_file_name.py and __init__.py; see `_private_name` and snake_case.")).toBe(
      "Wrote my_file_name.py and __init__.py; see _private_name and snake_case.",
    );
  });

  it("leaves out the marks of headings, emphasis, lists, quotes, links and code", () => {
    expect(plainText("# Report\n\n- **Two** things: _one thing_ and *another*\n> quoted\n\n```py\na_b = 1\n```\n[here](https://example.org/a_b)")).toBe(
      "Report\nTwo things: one thing and another\nquoted\na_b = 1\nhere",
    );
  });

  it("keeps characters that are no marks", () => {
    expect(plainText("2 * 3 * 4 > 5, *.py and #7")).toBe("2 * 3 * 4 > 5, *.py and #7");
  });

  it("shows the cells of a table in a row", () => {
    expect(plainText("| a | b |\n|---|---|\n| 1_000 | 2 |")).toBe("a b \n 1_000 2");
  });
});

describe("text without emphasis", () => {
  it("loses marks and nothing else", () => {
    expect(withoutEmphasis("## Which?\n**One** or _two_, `rm -rf x`")).toBe("Which?\nOne or two, rm -rf x");
    for (const text of ["[a](https://b 'c')", "2*3*4 and *.py", "<!-- x --> ![a](b)", "|a|b|\n|---|---|", "my_file_name __init__"]) expect(withoutEmphasis(text)).toBe(text);
  });
});
