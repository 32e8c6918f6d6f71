import { describe, expect, it } from "vitest";
import { asTyped, withLineEndsOf } from "@/views/files/lineEnds";

describe("the line ends of a file that is edited", () => {
  it.each(["", "one", "a\nb\n", "a\r\nb\r\n", "a\rb", "a\r\nb\nc\r\n\r\n", "\r\n\na"])("stay as they are without a change: %j", (text) => {
    expect(withLineEndsOf(text, asTyped(text))).toBe(text);
  });

  it("are taken over by new lines", () => {
    expect(withLineEndsOf("a\r\nb\r\n", "a\nnew\nb\nlast\n")).toBe("a\r\nnew\r\nb\r\nlast\r\n");
    expect(withLineEndsOf("one line", "one line\ntwo")).toBe("one line\ntwo");
  });

  it("stay on both sides of the change where they are mixed", () => {
    expect(withLineEndsOf("a\nb\r\nc\r\nd\r\ne\nf", "a\nb\nx\ny\nd\ne\nf")).toBe("a\nb\r\nx\r\ny\r\nd\r\ne\nf");
    expect(withLineEndsOf("a\nb\r\nc\r\nd", "")).toBe("");
  });
});
