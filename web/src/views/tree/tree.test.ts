import { expect, test } from "vitest";
import { asTree } from "@/views/tree/tree";

const part = (id: string, parent_id: string | null = null) => ({ id, parent_id });
const shown = (...args: Parameters<typeof asTree>) => asTree(...args).map(({ part, depth }) => "  ".repeat(depth) + part.id);
const PARTS = [part("goal"), part("plan", "goal"), part("other"), part("draft", "plan"), part("sources", "draft"), part("check", "goal"), part("stray", "gone")];

test("each task stands below the one it is part of, four levels deep, in the order of the parts", () => {
  expect(shown(PARTS)).toEqual(["goal", "  plan", "    draft", "      sources", "  check", "other", "stray"]);
});

test("what is left out moves what is below it up, and loses nothing", () => {
  expect(shown(PARTS, ({ id }) => !["plan", "draft"].includes(id))).toEqual(["goal", "  sources", "  check", "other", "stray"]);
});

test("tasks that are part of each other in a circle come last", () => {
  expect(shown([part("a", "b"), part("b", "a"), part("goal")])).toEqual(["goal", "a", "b"]);
});

test("a chain of 20,000 tasks is a list", () => {
  const chain = Array.from({ length: 20_000 }, (_, at) => part(`n${at}`, at > 0 ? `n${at - 1}` : null));
  expect(asTree(chain).at(-1)).toEqual({ part: chain.at(-1), depth: 19_999 });
});
