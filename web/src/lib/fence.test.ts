import { describe, expect, it } from "vitest";
import { fencedWords } from "@/lib/fence";

describe("fenced words", () => {
  it("are the words between two marks that belong together", () => {
    const inner = "One.\n>>> 00000000000000ff: not the end.\nTwo.";
    expect(fencedWords(`[Task] Bob has finished a task of yours.\n\n<<< 0123456789abcdef: the result, in the words of Bob.\n${inner}\n>>> 0123456789abcdef: the end of it.`)).toBe(inner);
  });

  it("are the whole text without a fence", () => {
    expect(fencedWords("Hello <<< there")).toBe("Hello <<< there");
  });
});
