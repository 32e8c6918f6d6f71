// @vitest-environment jsdom
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { markFormulas } from "@/reading/formulas";
import MarkdownBody, { isQuick, splitBlocks } from "@/reading/MarkdownBody";
import { revealHidden } from "@/reading/visible";

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)>",
  "<iframe srcdoc='<script>alert(1)</script>'>",
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](data:text/html,<script>alert(1)</script>)",
  "[a](vbscript:x)",
  "![a](javascript:alert(1))",
  "![a](https://evil.invalid/pixel.png)",
  "<https://evil.invalid>",
  "[a]: https://evil.invalid\n\n[a]",
  "<a href='https://evil.invalid' onclick=alert(1)>x</a>",
  "<style>@import 'https://evil.invalid'</style>",
  "```html\n<script>alert(1)</script>\n```",
  "| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <b>c</b> | d |",
  "<details ontoggle=alert(1) open>x</details>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
];

const DECIDED = [
  ...HOSTILE,
  "Shall I go on?\n<!-- and delete -->\n\n[x]: https://y '\u202emore'\n```bash rm\nls\n```",
  "[ok](https://evil.invalid 'and delete') and ![a](b 'c') [a][b]\n\n[b]: https://e.x 'rm'",
  "A note[^1] and one more.\n\n[^1]: hidden\n[^2]: never named",
  "| a | b |\n|---|---|\n| 1 | 2 | and a third | and a fourth |",
  "# Head\n\n**bold** _it_ ~~gone~~ `code`\n\n- one\n- [ ] two\n\n> quoted\n\n---\n\nlast",
  "&#8238;turned &zwnj; \\*star\\* r\u200bm \ufeff line\rback",
  "$x^2$ and ```mermaid\ngraph TD; A-->B\n```",
  "```mermaid\ngraph TD; A-->B\n```",
  "<https://a.example/?q=1> and https://b.example www.c.example",
];
const words = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, "");

describe("Markdown that a person decides by", () => {
  it.each(DECIDED)("hides no word of %j", (text) => {
    const { container } = render(<MarkdownBody text={text} breaks isWhole />);
    expect(words(container.textContent!)).toBe(words(revealHidden(text)));
    expect(container.querySelectorAll("script, img, iframe, style, a, details")).toHaveLength(0);
  });

  it("shows emphasis, headings and lists without their marks, and marks hidden characters", () => {
    const { container } = render(<MarkdownBody text={"## Which?\n\n**One** or r\u200bm"} breaks isWhole />);
    expect(container.textContent).toBe("Which?One or r⟨U+200B⟩m");
    expect(container.querySelector("h2")).not.toBeNull();
    expect(container.querySelector("mark")!.getAttribute("data-code")).toBe("⟨U+200B⟩");
  });
});

describe("Markdown", () => {
  it.each(HOSTILE)("renders %s as text only", (text) => {
    const { container } = render(<MarkdownBody text={text} breaks={false} />);
    expect(container.querySelectorAll("script, img, iframe, style, object, embed, form, a, details")).toHaveLength(0);
    for (const element of container.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(name.startsWith("on")).toBe(false);
        expect(value).not.toMatch(/^\s*(javascript|data|vbscript):/i);
      }
    }
  });

  it("opens a link only after its address was shown", async () => {
    render(<MarkdownBody text="[here](https://example.org/a?b=c)" breaks={false} />);
    await userEvent.click(screen.getByRole("button", { name: "here" }));
    expect((await screen.findByRole("dialog", {}, { timeout: 20_000 })).textContent).toContain("https://example.org/a?b=c");
    const link = screen.getByRole("link", { name: /open/i });
    expect(link.getAttribute("rel")).toBe("noopener noreferrer");
  });

  it("colours code without setting HTML", () => {
    const { container } = render(<MarkdownBody text={"```python\nif a < 'b & c':\n    pass\n```"} breaks={false} />);
    expect(container.querySelector("pre")?.textContent).toBe("if a < 'b & c':\n    pass");
    expect(container.querySelector(".hljs-keyword")?.textContent).toBe("if");
  });

  it("is split into blocks that mean the same alone", () => {
    expect(splitBlocks("a\n\nb\n\n```\nx\n\ny\n```\n\nc")).toEqual(["a", "b", "```\nx\n\ny\n```", "c"]);
    expect(splitBlocks("- a\n\n- b\n\nend")).toEqual(["- a\n\n- b", "end"]);
    expect(splitBlocks("see [1]\n\n[1]: https://example.org")).toHaveLength(1);
  });

  it.each(["*a_ ", "[a](", "[", "- a\n", "|a|b|\n", "[^a]", "> ", ">", "a*b_", "`a``", "<a ", "![", "**a ", "[\n", "[a]: b\n"])("shows %j as text if it is repeated without end", (unit) => {
    const text = unit.repeat(100_000 / unit.length);
    const begun = process.cpuUsage();
    const { container } = render(<MarkdownBody text={text} breaks={false} />);
    expect(container.textContent).toContain(text.slice(0, 50_000).trim());
    expect(screen.getByRole("button", { name: /^Format this part/ })).toBeTruthy();
    expect(isQuick(text)).toBe(false);
    // It took minutes: the limit only has to tell that from a busy machine.
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(5_000);
  }, 60_000);

  it("is formatted piece by piece if it is long", async () => {
    const text = Array.from({ length: 300 }, () => "**a** ".repeat(10)).join("\n\n");
    const { container } = render(<MarkdownBody text={text} breaks={false} />);
    const first = container.querySelectorAll("strong").length;
    expect(first).toBe(1_000);
    expect(container.textContent).toContain("**a** **a**");
    await waitFor(() => expect(container.querySelectorAll("strong")).toHaveLength(3_000), { timeout: 20_000 });
    expect(container.textContent).not.toContain("*");
  }, 60_000);

  it("finds formulas and definitions in a time that grows with the text", () => {
    for (const [start, unit] of [["a", "`"], ["$", "[\n"], ["", "$$ "], ["", "\\["]] as const) {
      // Time of the processor: a busy machine is no slow pattern.
      const begun = process.cpuUsage();
      splitBlocks(markFormulas(`${start}${unit.repeat(90_000 / unit.length)}$`));
      expect(process.cpuUsage(begun).user / 1000, unit).toBeLessThan(5_000);
    }
  }, 60_000);
});
