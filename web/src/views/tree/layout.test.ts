import { describe, expect, it } from "vitest";
import { CARD, layoutTree, type LayoutNode, shiftIntoView, type TreeLayout } from "@/views/tree/layout";

const node = (id: string, parent_id: string | null = null, more: Partial<LayoutNode> = {}): LayoutNode => ({ id, parent_id, depends_on: [], stage_id: null, ...more });
const at = (layout: TreeLayout, id: string) => layout.positions.get(id)!;
const overlaps = ({ positions }: TreeLayout): string[] => {
  const all = [...positions];
  return all.flatMap(([id, a], i) => all.slice(i + 1).filter(([, b]) => Math.abs(a.x - b.x) < CARD.width && Math.abs(a.y - b.y) < CARD.height).map(([other]) => `${id} and ${other}`));
};

describe("layout", () => {
  const goal = node("n0");
  const stages = [{ id: "s1", name: "research" }, { id: "s2", name: "report" }];
  const research = ["n1", "n2", "n3"].map((id) => node(id, "n0", { stage_id: "s1" }));
  const report = node("n4", "n0", { stage_id: "s2", depends_on: ["n1", "n3"] });

  it("puts what was given away below its task and further to the right, four levels deep", () => {
    const layout = layoutTree([goal, node("a", "n0"), node("aa", "a"), node("aaa", "aa"), node("ab", "a")], []);
    expect([...layout.positions.keys()]).toEqual(["n0", "a", "aa", "aaa", "ab"]);
    const [, second, third, fourth, next] = [...layout.positions.values()];
    expect(third!.x - second!.x).toBe(fourth!.x - third!.x);
    expect(third!.x).toBeGreaterThan(second!.x);
    expect(next!.x).toBe(third!.x);
    for (const [above, below] of [["n0", "a"], ["a", "aa"], ["aa", "aaa"], ["aaa", "ab"]]) expect(at(layout, below!).y).toBeGreaterThanOrEqual(at(layout, above!).y + CARD.height);
  });

  it("puts tasks with work of their own beside each other below the first one", () => {
    const leads = ["a", "b", "c"].flatMap((id) => [node(id, "n0"), ...[1, 2, 3, 4, 5].map((n) => node(`${id}${n}`, id))]);
    const layout = layoutTree([goal, ...leads], []);
    expect(new Set(["a", "b", "c"].map((id) => at(layout, id).y)).size).toBe(1);
    expect(at(layout, "b").x).toBeGreaterThan(at(layout, "a5").x + CARD.width);
    expect(overlaps(layout)).toEqual([]);
  });

  it("draws a line to each task below another, and one to each frame", () => {
    const { lines, frames } = layoutTree([goal, ...research, node("n5", "n1")], stages);
    expect([...lines.keys()]).toEqual(["n5"]);
    expect(frames[0]!.line[0]).toEqual({ x: 16, y: CARD.height });
    expect(frames[0]!.line.at(-1)!.y).toBe(frames[0]!.y);
  });

  it("begins each line of a column where the one above it turned", () => {
    const { lines } = layoutTree([goal, ...Array.from({ length: 6 }, (_, n) => node(`n${n + 1}`, "n0"))], []);
    const starts = [...lines.values()].map(([start]) => start!);
    const turns = [...lines.values()].map((line) => line.at(-2)!);
    const above = (at: number) => ({ x: turns[at]!.x, y: turns[at]!.y - 6 });
    const goalEnd = { x: 16, y: CARD.height };
    expect(starts).toEqual([goalEnd, above(0), above(1), goalEnd, above(3), above(4)]);
  });

  it("holds the tasks of a stage in its frame, with what is below them, in the order of the stages", () => {
    const layout = layoutTree([goal, ...research, report, node("n5", "n1"), node("n6", "n4")], stages);
    expect(layout.frames.map((frame) => [frame.title, frame.number, frame.nodeIds])).toEqual([["research", 1, ["n1", "n2", "n3"]], ["report", 2, ["n4"]]]);
    const isInside = (id: string, frame: number): boolean => {
      const { x, y, width, height } = layout.frames[frame]!;
      const place = at(layout, id);
      return place.x > x && place.y > y && place.x + CARD.width < x + width && place.y + CARD.height < y + height;
    };
    expect(["n1", "n2", "n3", "n5"].map((id) => isInside(id, 0))).toEqual([true, true, true, true]);
    expect(["n4", "n6"].map((id) => isInside(id, 1))).toEqual([true, true]);
    expect(isInside("n4", 0)).toBe(false);
    expect(overlaps(layout)).toEqual([]);
  });

  it("frames the stages of a task further down, indented below it", () => {
    const layout = layoutTree([goal, node("a", "n0"), node("b", "a", { stage_id: "s1" }), node("c", "a", { stage_id: "s2" }), node("d", "n0")], stages);
    expect(layout.frames.map((frame) => [frame.x, frame.nodeIds])).toEqual([[at(layout, "a").x + 30, ["b"]], [at(layout, "a").x + 30, ["c"]]]);
    expect(layout.frames[1]!.y).toBeGreaterThanOrEqual(layout.frames[0]!.y + layout.frames[0]!.height);
  });

  it("moves no card when tasks are added at the end", () => {
    let nodes = [node("n00"), node("n01", "n00")];
    let layout = layoutTree(nodes, stages);
    for (let n = 2; n < 60; n++) {
      nodes = [...nodes, node(`n${String(n).padStart(2, "0")}`, n % 3 === 0 ? nodes.at(-1)!.id : "n00")].sort((a, b) => (a.id < b.id ? -1 : 1));
      const next = layoutTree(nodes, stages, layout.columns);
      expect([...layout.positions].filter(([id, old]) => next.positions.get(id)!.x !== old.x || next.positions.get(id)!.y !== old.y)).toEqual([]);
      layout = next;
    }
    expect(overlaps(layout)).toEqual([]);
  });

  it("moves only what is below or to the right when work is added inside", () => {
    const leads = ["a", "b", "c", "d"].flatMap((id) => [node(id, "n0"), node(`${id}1`, id)]);
    const first = layoutTree([goal, ...leads], []);
    const second = layoutTree([goal, ...leads, node("b2", "b")], [], first.columns);
    for (const id of ["n0", "a", "a1", "b", "b1"]) expect(at(second, id)).toEqual(at(first, id));
    for (const id of ["c", "c1", "d", "d1"]) {
      expect(at(second, id).x).toBe(at(first, id).x);
      expect(at(second, id).y).toBeGreaterThanOrEqual(at(first, id).y);
    }
  });

  it("puts unfolded work back into its columns", () => {
    const nodes = [goal, node("a", "n0"), ...Array.from({ length: 9 }, (_, n) => node(`a${n}`, "a")), node("b", "n0")];
    const open = layoutTree(nodes, []);
    const folded = layoutTree(nodes.filter(({ id }) => id.length < 2 || id === "n0"), [], open.columns);
    expect(layoutTree(nodes, [], folded.columns).positions).toEqual(open.positions);
  });

  it("puts first tasks without others in rows, and the trees of others below each other", () => {
    const roots = Array.from({ length: 7 }, (_, n) => node(`r${n}`));
    const layout = layoutTree([goal, node("n1", "n0"), ...roots, node("z"), node("z1", "z")], []);
    const rows = roots.map(({ id }) => at(layout, id).y);
    expect(new Set(rows.slice(0, 5)).size).toBe(1);
    expect(rows[5]).toBeGreaterThan(rows[0]!);
    expect(at(layout, "r0").y).toBeGreaterThan(at(layout, "n1").y);
    expect(at(layout, "z")).toEqual({ x: 0, y: layout.height - 2 * CARD.height - 36 });
    expect(overlaps(layout)).toEqual([]);
  });

  it("survives circles and unknown ids", () => {
    const odd = [node("a", "b"), node("b", "a"), node("c", "gone", { stage_id: "unknown" }), node("d", "d")];
    expect([...layoutTree(odd, []).positions.keys()].sort()).toEqual(["a", "b", "c", "d"]);
  });

  it("lays out 300 tasks of four levels as wide as a window, within its size and without overlap", () => {
    const nodes = [goal];
    for (let a = 0; a < 6; a++) {
      nodes.push(node(`n${a}`.padEnd(4, "x"), "n0", { stage_id: a < 3 ? "s1" : "s2" }));
      for (let b = 0; b < 7; b++) {
        nodes.push(node(`n${a}${b}`.padEnd(4, "x"), `n${a}`.padEnd(4, "x")));
        for (let c = 0; c < 6; c++) nodes.push(node(`n${a}${b}${c}`, `n${a}${b}`.padEnd(4, "x")));
      }
    }
    const begun = process.cpuUsage();
    const layout = layoutTree(nodes, stages);
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(500);
    expect(layout.positions.size).toBe(301);
    expect(overlaps(layout)).toEqual([]);
    expect(Math.max(...[...layout.positions.values()].map(({ x }) => x + CARD.width))).toBeLessThanOrEqual(layout.width);
    expect(Math.max(...[...layout.positions.values()].map(({ y }) => y + CARD.height))).toBeLessThanOrEqual(layout.height);
    expect(layout.width / layout.height).toBeGreaterThan(1);
    expect(layout.width / layout.height).toBeLessThan(2.5);
  });

  it("lays out a chain of 3,000 tasks", () => {
    const chain = Array.from({ length: 3000 }, (_, n) => node(`n${String(n).padStart(4, "0")}`, n > 0 ? `n${String(n - 1).padStart(4, "0")}` : null));
    expect(layoutTree(chain, []).positions.size).toBe(3000);
  });
});

it("moves as little as needed, and what does not fit to its start, from wherever it is and only once", () => {
  const shifts = [[30, 100], [10, 100], [250, 100], [10, 400], [-200, 400], [28, 400]].map(([at, size]) => shiftIntoView(at!, size!, 28, 300));
  expect(shifts).toEqual([0, 18, -50, 18, 228, 0]);
});
