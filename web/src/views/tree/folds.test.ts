// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { foldedAtFirst, foldTree, useFolds } from "@/views/tree/folds";
import type { LayoutNode } from "@/views/tree/layout";

const node = (id: string, parent_id: string | null): LayoutNode => ({ id, parent_id, depends_on: [], stage_id: null });
const none = new Map();
/** A goal with parts `a` to the given letter, four tasks below each, and one task below each of them. */
const team = (last: string): LayoutNode[] =>
  [node("0", null), ...[..."abcdefghijklmnopqrstuvwxyz"].filter((part) => part <= last).flatMap((part) => [node(part, "0"), ...["1", "2", "3", "4"].flatMap((n) => [node(part + n, part), node(`${part}${n}x`, part + n)])])];

describe("folds of the tree", () => {
  it("hide what is below a task, at every depth, and say who shows it", () => {
    const tree = foldTree(team("b"), none, (id) => id === "a" || id === "b1");
    expect(tree.nodes.map(({ id }) => id)).toEqual(["0", "a", "b", "b1", "b2", "b2x", "b3", "b3x", "b4", "b4x"]);
    expect(tree.places.get("a")).toEqual({ parent: "0", level: 2, isFolded: true, below: ["a1", "a1x", "a2", "a2x", "a3", "a3x", "a4", "a4x"] });
    expect(tree.places.get("b2x")).toEqual({ parent: "b2", level: 4, isFolded: false, below: [] });
    expect(["a3x", "b1x", "b2x"].map((id) => tree.shownBy.get(id))).toEqual(["a", "b1", "b2x"]);
    expect(tree.parents).toEqual(["0", "a", "a1", "a2", "a3", "a4", "b", "b1", "b2", "b3", "b4"]);
  });

  it("do not count stacks as tasks, and fold nothing where nothing is below", () => {
    const stacks = new Map([["a*", { id: "a*", title: "a …", nodeIds: ["a", "b"] }]]);
    const tree = foldTree([node("0", null), node("a*", "0"), node("a", "a*"), node("b", "a*")], stacks, (id) => id !== "0");
    expect(tree.places.get("0")!.below).toEqual(["a", "b"]);
    expect(tree.places.get("a*")).toMatchObject({ isFolded: true, below: ["a", "b"] });
    expect(foldTree([node("0", null)], none, () => true).places.get("0")!.isFolded).toBe(false);
  });

  it("show every task of a small team at first", () => {
    expect(foldedAtFirst(team("d"), none, () => "finished")).toEqual(new Set());
  });

  it("hide the finished work of a large team at first, and not what somebody works on", () => {
    const folded = foldedAtFirst(team("f"), none, (id) => (id === "c2x" || id === "0" ? "under way" : id[0] === "d" ? "not begun" : "finished"));
    const tree = foldTree(team("f"), none, (id) => folded.has(id));
    expect([...tree.places].filter(([, place]) => place.isFolded).map(([id]) => id)).toEqual(["a", "b", "c1", "c3", "c4", "e", "f"]);
    expect(tree.shownBy.get("c2x")).toBe("c2x");
  });

  it("hide work that nobody has begun only if there is too much to show", () => {
    const progress = (id: string) => (id === "0" || id[0] === "a" ? ("under way" as const) : ("not begun" as const));
    expect(foldedAtFirst(team("m"), none, progress)).toEqual(new Set());
    const folded = foldedAtFirst(team("z"), none, progress);
    expect(foldTree(team("z"), none, (id) => folded.has(id)).nodes).toHaveLength(1 + 9 + 25);
  });

  it("leave the newest goal open when all is finished, and fold the older ones", () => {
    const older = team("f").map(({ id, parent_id }) => node(`-${id}`, parent_id === null ? null : `-${parent_id}`));
    const folded = foldedAtFirst([...older, ...team("b")], none, () => "finished");
    expect(folded.has("-0")).toBe(true);
    expect(folded.has("0")).toBe(false);
  });
});

describe("folds of a team", () => {
  beforeEach(() => localStorage.clear());
  const nodes = team("b");
  const open = (id: string) => renderHook(({ team }) => useFolds(team, nodes, none, () => "under way"), { initialProps: { team: id } });

  it("are kept in the browser, each team's apart", () => {
    const first = open("t1");
    expect(first.result.current.tree.nodes).toHaveLength(19);
    act(() => first.result.current.fold(["a"], true));
    expect(first.result.current.tree.nodes).toHaveLength(11);
    expect(open("t1").result.current.tree.nodes).toHaveLength(11);
    const other = open("t2");
    expect(other.result.current.tree.nodes).toHaveLength(19);
    other.rerender({ team: "t1" });
    expect(other.result.current.tree.nodes).toHaveLength(11);
  });

  it("stay as they are when work ends while a person looks at it", () => {
    const large = team("f");
    let isDone = false;
    const page = renderHook(() => useFolds("t1", large, none, () => (isDone ? "finished" : "under way")));
    isDone = true;
    page.rerender();
    expect(page.result.current.tree.nodes).toHaveLength(large.length);
    expect(renderHook(() => useFolds("t1", large, none, () => "finished")).result.current.tree.nodes.length).toBeLessThan(10);
  });

  it("survive what cannot be read", () => {
    localStorage.setItem("agiraph.tree.t1", "{");
    expect(open("t1").result.current.tree.nodes).toHaveLength(19);
  });
});
