import { describe, expect, it } from "vitest";
import { sharedTitle, stackAlike, type StackableNode } from "@/views/tree/stacks";

const node = (n: number, title: string, more: Partial<StackableNode> = {}): StackableNode => ({ id: `n${String(n).padStart(3, "0")}`, title, parent_id: "n000", depends_on: [], stage_id: null, ...more });
const goal = node(0, "Translate the book", { parent_id: null });
const pages = Array.from({ length: 180 }, (_, n) => node(n + 1, `Translate page ${n + 1}`));
const others = Array.from({ length: 20 }, (_, n) => node(n + 201, `${"abcdefghijklmnopqrst"[n]} task of its own`));

describe("stacks of the board", () => {
  it("puts 180 alike children of 201 tasks below one card", () => {
    const { nodes, stacks } = stackAlike([goal, ...pages, ...others]);
    expect([...stacks.values()]).toEqual([{ id: "n001*", title: "Translate page …", nodeIds: pages.map((page) => page.id) }]);
    expect(nodes.find((one) => one.id === "n001*")).toEqual({ id: "n001*", parent_id: "n000", stage_id: null, depends_on: [] });
    expect(nodes.filter((one) => one.parent_id === "n001*").map((one) => one.id)).toEqual(pages.map((page) => page.id));
    expect(nodes.filter((one) => one.parent_id === "n000")).toHaveLength(21);
  });

  it("stacks siblings that begin with the same words, and families apart by stage: the stage is the stack's", () => {
    const cities = Array.from({ length: 40 }, (_, n) => node(n + 1, `Survey the ${"abcdefghij"[n % 10]}${n} quarter well`, { stage_id: n < 20 ? "s1" : "s2" }));
    const { nodes, stacks } = stackAlike([goal, ...cities]);
    expect([...stacks.values()].map(({ title, nodeIds }) => [title, nodeIds.length])).toEqual([["Survey the … quarter well", 20], ["Survey the … quarter well", 20]]);
    expect(nodes.filter((one) => one.stage_id !== null).map((one) => [one.id, one.stage_id])).toEqual([["n001*", "s1"], ["n021*", "s2"]]);
  });

  it("leaves alike tasks with work of their own where they are, unless they are very many", () => {
    const teams = (count: number) => [goal, ...Array.from({ length: count }, (_, n) => [node(n + 1, `Survey region ${n + 1}`), node(n + 101, `Count ${"abcdefghijklmnopqrstuvwxyz"[n]} here`, { parent_id: `n${String(n + 1).padStart(3, "0")}` })]).flat()];
    expect(stackAlike(teams(19)).stacks.size).toBe(0);
    expect([...stackAlike(teams(20)).stacks.values()].map(({ nodeIds }) => nodeIds.length)).toEqual([20]);
  });

  it("never stacks those with work of their own with those without", () => {
    const goals = [node(0, "Page 0", { parent_id: null }), ...Array.from({ length: 30 }, (_, n) => node(n + 1, `Page ${n + 1}`, { parent_id: null })), node(100, "Draw it")];
    expect([...stackAlike(goals).stacks.values()].map(({ id, nodeIds }) => [id, nodeIds.length])).toEqual([["n001*", 30]]);
  });

  it("stacks tasks without a likeness only on a board that is too long", () => {
    const words = (n: number) => node(n, `${String.fromCharCode(97 + (n % 26))}${String.fromCharCode(97 + Math.floor(n / 26))}x alone`);
    expect(stackAlike([goal, ...Array.from({ length: 50 }, (_, n) => words(n + 1))]).stacks.size).toBe(0);
    const { stacks } = stackAlike([goal, ...Array.from({ length: 90 }, (_, n) => words(n + 1))]);
    expect([...stacks.values()].map(({ title, nodeIds }) => [title, nodeIds.length])).toEqual([["More tasks", 90]]);
  });

  it("leaves a small board alone", () => {
    expect(stackAlike([goal, ...pages.slice(0, 20)]).stacks.size).toBe(0);
  });

  it("names what titles share", () => {
    expect(sharedTitle(["Read page 1 of 9", "Read page 2 of 9"])).toBe("Read page … of 9");
    expect(sharedTitle(["One", "Two"])).toBe("");
  });
});
