import { describe, expect, it } from "vitest";
import { refoldOrder, sharedTitle, stackBoard, type StackableNode } from "@/views/board/stacks";

const node = (n: number, title: string, more: Partial<StackableNode> = {}): StackableNode => ({ id: `n${String(n).padStart(3, "0")}`, title, parent_id: "n000", depends_on: [], stage_id: null, ...more });
const closed = () => false;
const goal = node(0, "Translate the book", { parent_id: null });
const pages = Array.from({ length: 180 }, (_, n) => node(n + 1, `Translate page ${n + 1}`));
const others = Array.from({ length: 20 }, (_, n) => node(n + 201, `${"abcdefghijklmnopqrst"[n]} task of its own`));

describe("stacks of the board", () => {
  it("folds 180 alike children of 201 tasks into one card that keeps their lines", () => {
    const last = node(250, "Bind the book", { depends_on: ["n001", "n180"] });
    const { nodes, stacks, stackOf } = stackBoard([goal, ...pages, ...others, last], closed);
    expect([...stacks.values()]).toEqual([{ id: "n001*", title: "Translate page …", nodeIds: pages.map((page) => page.id), isOpen: false }]);
    expect(nodes).toHaveLength(1 + 1 + 20 + 1);
    expect(nodes.find((one) => one.id === "n250")!.depends_on).toEqual(["n001*"]);
    expect(stackOf.get("n090")).toBe("n001*");
  });

  it("shows the stack and all members once it is open, in the stack's place", () => {
    const before = new Map([["tasks:1", ["n001*", "n201"]]]);
    const open = stackBoard([goal, ...pages, ...others], (id) => id === "n001*");
    expect(open.nodes).toHaveLength(1 + 1 + 180 + 20);
    expect(refoldOrder(before, open)!.get("tasks:1")!.slice(0, 3)).toEqual(["n001*", "n001", "n002"]);
    const shut = stackBoard([goal, ...pages, ...others], closed);
    expect(refoldOrder(refoldOrder(before, open), shut)).toEqual(before);
  });

  it("folds the children of a stack's members together", () => {
    const reviews = pages.map((page, n) => node(n + 300, `Review page ${n + 1}`, { parent_id: page.id }));
    const { nodes } = stackBoard([goal, ...pages, ...reviews], closed);
    expect(nodes.map(({ id, parent_id }) => [id, parent_id])).toEqual([["n000", null], ["n001*", "n000"], ["n300*", "n001*"]]);
  });

  it("folds siblings that begin with the same words, and families apart by stage", () => {
    const cities = Array.from({ length: 40 }, (_, n) => node(n + 1, `Survey the ${"abcdefghij"[n % 10]}${n} quarter well`, { stage_id: n < 20 ? "s1" : "s2" }));
    const { stacks } = stackBoard([goal, ...cities], closed);
    expect([...stacks.values()].map(({ title, nodeIds }) => [title, nodeIds.length])).toEqual([["Survey the … quarter well", 20], ["Survey the … quarter well", 20]]);
  });

  it("folds tasks without a likeness only on a board that is too long", () => {
    const words = (n: number) => node(n, `${String.fromCharCode(97 + (n % 26))}${String.fromCharCode(97 + Math.floor(n / 26))}x alone`);
    expect(stackBoard([goal, ...Array.from({ length: 50 }, (_, n) => words(n + 1))], closed).stacks.size).toBe(0);
    const { nodes, stacks } = stackBoard([goal, ...Array.from({ length: 90 }, (_, n) => words(n + 1))], closed);
    expect([...stacks.values()].map(({ title }) => title)).toEqual(["More tasks"]);
    expect(nodes).toHaveLength(2);
  });

  it("leaves a small board alone", () => {
    expect(stackBoard([goal, ...pages.slice(0, 20)], closed).stacks.size).toBe(0);
  });

  it("names what titles share", () => {
    expect(sharedTitle(["Read page 1 of 9", "Read page 2 of 9"])).toBe("Read page … of 9");
    expect(sharedTitle(["One", "Two"])).toBe("");
  });
});
