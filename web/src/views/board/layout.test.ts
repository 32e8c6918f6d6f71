import { describe, expect, it } from "vitest";
import { CARD, layoutBoard, type LayoutNode, ROWS_PER_COLUMN, shiftIntoView } from "@/views/board/layout";

const node = (id: string, more: Partial<LayoutNode> = {}): LayoutNode => ({ id, parent_id: null, depends_on: [], stage_id: null, ...more });
const overlaps = (positions: Map<string, { x: number; y: number }>): boolean => {
  const all = [...positions.values()];
  return all.some((a, i) => all.some((b, j) => i < j && Math.abs(a.x - b.x) < CARD.width && Math.abs(a.y - b.y) < CARD.height));
};

describe("layout", () => {
  const goal = node("n0");
  const research = ["n1", "n2", "n3"].map((id) => node(id, { parent_id: "n0", stage_id: "s1" }));
  const report = node("n4", { parent_id: "n0", stage_id: "s2", depends_on: ["n1", "n3"] });
  const stages = [{ id: "s1", name: "research" }, { id: "s2", name: "report" }];

  it("puts goals first and stages in their order", () => {
    const { lanes, edges } = layoutBoard([goal, ...research, report], stages);
    expect(lanes.map((lane) => [lane.title, lane.number, lane.nodeIds.length])).toEqual([["Goals", 0, 1], ["research", 1, 3], ["report", 2, 1]]);
    expect(edges.map((edge) => edge.id)).toEqual(["n1>n4", "n3>n4"]);
  });

  it("moves no card when tasks are added", () => {
    const first = layoutBoard([goal, ...research, report], stages);
    const more = [goal, ...research, report, node("n5", { parent_id: "n1" }), node("n6", { parent_id: "n0", stage_id: "s1", depends_on: ["n1"] })];
    const second = layoutBoard(more, stages, first.order);
    for (const id of ["n0", "n1", "n2", "n3"]) expect(second.positions.get(id)).toEqual(first.positions.get(id));
    expect(second.positions.get("n4")!.y).toBe(first.positions.get("n4")!.y);
    expect(second.lanes[1]!.nodeIds.slice(0, 3)).toEqual(first.lanes[1]!.nodeIds);
    expect(second.edges.find((edge) => edge.kind === "spawned")).toMatchObject({ source: "n1", target: "n5" });
  });

  it("puts tasks to the right of their dependencies", () => {
    const tasks = [node("n1", { parent_id: "n0" }), node("n2", { parent_id: "n0", depends_on: ["n1"] }), node("n3", { parent_id: "n0" })];
    const { positions } = layoutBoard([goal, ...tasks], []);
    expect(positions.get("n2")!.x).toBeGreaterThan(positions.get("n1")!.x);
    expect(positions.get("n3")!.x).toBe(positions.get("n1")!.x);
  });

  it("puts a dependent task of the same stage into the next column", () => {
    const pair = [node("n1", { parent_id: "n0", stage_id: "s1" }), node("n2", { parent_id: "n0", stage_id: "s1", depends_on: ["n1"] })];
    const { positions, lanes } = layoutBoard([goal, ...pair], stages);
    expect(positions.get("n2")!.x).toBeGreaterThan(positions.get("n1")!.x);
    expect(lanes).toHaveLength(2);
  });

  it("keeps children below their parent", () => {
    const inside = [node("n1", { parent_id: "n0", stage_id: "s1" }), node("n2", { parent_id: "n0", stage_id: "s1" }), node("n3", { parent_id: "n1" })];
    expect(layoutBoard([goal, ...inside], stages).lanes[1]!.nodeIds).toEqual(["n1", "n3", "n2"]);
  });

  it("survives cycles and unknown ids", () => {
    const odd = [node("a", { depends_on: ["b", "gone"] }), node("b", { depends_on: ["a"], parent_id: "b" }), node("c", { parent_id: "gone", stage_id: "unknown" })];
    const { positions } = layoutBoard(odd, []);
    expect([...positions.keys()].sort()).toEqual(["a", "b", "c"]);
  });

  it("lays out a thousand tasks quickly, without overlap", () => {
    const many: LayoutNode[] = [goal];
    for (let n = 0; n < 1000; n++) {
      const stage = Math.floor(n / 100);
      many.push(
        node(`p${String(n).padStart(4, "0")}`, {
          parent_id: "n0",
          stage_id: `s${stage}`,
          depends_on: stage > 0 ? [n - 100, n - 99 - (n % 3)].map((m) => `p${String(Math.max(0, m)).padStart(4, "0")}`) : [],
        }),
      );
    }
    const begun = performance.now();
    const { positions, lanes } = layoutBoard(many, Array.from({ length: 10 }, (_, n) => ({ id: `s${n}`, name: `stage ${n}` })));
    expect(performance.now() - begun).toBeLessThan(1500);
    expect(positions.size).toBe(1001);
    expect(lanes).toHaveLength(11);
    expect(Math.max(...[...positions.values()].map((position) => position.y))).toBeLessThan((2 * ROWS_PER_COLUMN + 1) * (CARD.height + 40));
    expect(overlaps(positions)).toBe(false);
  });
});

it("moves as little as needed, and what does not fit to its start, from wherever it is and only once", () => {
  const shifts = [[30, 100], [10, 100], [250, 100], [10, 400], [-200, 400], [28, 400]].map(([at, size]) => shiftIntoView(at!, size!, 28, 300));
  expect(shifts).toEqual([0, 18, -50, 18, 228, 0]);
});
