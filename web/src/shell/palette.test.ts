import { describe, expect, it } from "vitest";
import { splitAtWords } from "@/shell/CommandPalette";

describe("a preview", () => {
  it("is split at the searched words, in any case", () => {
    expect(splitAtWords("The Kettle boils; kettles do.", ["kettle"])).toEqual(["The ", "Kettle", " boils; ", "kettle", "s do."]);
    expect(splitAtWords("a+b is (c)", ["(c)", "a+b"])).toEqual(["", "a+b", " is ", "(c)", ""]);
    expect(splitAtWords("nothing here", ["tea"])).toEqual(["nothing here"]);
  });
});
