import { expect, it } from "vitest";
import { lineDiff } from "@/views/operations/lineDiff";

const shown = (before: string, now: string) => lineDiff(before, now).map(({ mark, text }) => mark + text);

it("marks what was removed and added, and keeps every line of both texts", () => {
  expect(shown("a\nb\nc\nd", "a\nx\nc\nd\ne")).toEqual([" a", "-b", "+x", " c", " d", "+e"]);
  expect(shown("same", "same")).toEqual([" same"]);
  expect(shown("", "a")).toEqual(["-", "+a"]);
});

it("shows a huge change as a whole, without comparing each pair of lines", () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, n) => `${word} ${n}`).join("\n");
  const lines = lineDiff(`first\n${many("old")}\nlast`, `first\n${many("new")}\nlast`);
  expect([lines.length, lines[0], lines[1], lines[3001], lines.at(-1)]).toEqual([6002, { mark: " ", text: "first" }, { mark: "-", text: "old 0" }, { mark: "+", text: "new 0" }, { mark: " ", text: "last" }]);
});
