import { describe, expect, it } from "vitest";
import { CARD, layout, type Piece, ROWS } from "@/views/board/layout";

const piece = (id: string, more: Partial<Piece> = {}): Piece => ({ id, parent_id: null, depends_on: [], stage_id: null, ...more });
const overlaps = (at: Map<string, { x: number; y: number }>): boolean => {
  const all = [...at.values()];
  return all.some((a, i) => all.some((b, j) => i < j && Math.abs(a.x - b.x) < CARD.width && Math.abs(a.y - b.y) < CARD.height));
};

describe("layout", () => {
  const goal = piece("n0");
  const research = ["n1", "n2", "n3"].map((id) => piece(id, { parent_id: "n0", stage_id: "s1" }));
  const report = piece("n4", { parent_id: "n0", stage_id: "s2", depends_on: ["n1", "n3"] });
  const steps = [{ id: "s1", name: "research" }, { id: "s2", name: "report" }];

  it("puts goals first and stages in their order", () => {
    const { lanes, edges } = layout([goal, ...research, report], steps);
    expect(lanes.map((lane) => [lane.title, lane.number, lane.pieces.length])).toEqual([["Goals", 0, 1], ["research", 1, 3], ["report", 2, 1]]);
    expect(edges.map((edge) => edge.id)).toEqual(["n1>n4", "n3>n4"]);
  });

  it("moves nothing when work is added", () => {
    const first = layout([goal, ...research, report], steps);
    const more = [goal, ...research, report, piece("n5", { parent_id: "n1" }), piece("n6", { parent_id: "n0", stage_id: "s1", depends_on: ["n1"] })];
    const second = layout(more, steps, first.order);
    for (const id of ["n0", "n1", "n2", "n3"]) expect(second.at.get(id)).toEqual(first.at.get(id));
    expect(second.at.get("n4")!.y).toBe(first.at.get("n4")!.y);
    expect(second.lanes[1]!.pieces.slice(0, 3)).toEqual(first.lanes[1]!.pieces);
    expect(second.edges.find((edge) => edge.kind === "spawned")).toMatchObject({ source: "n1", target: "n5" });
  });

  it("puts tasks to the right of what they need", () => {
    const tasks = [piece("n1", { parent_id: "n0" }), piece("n2", { parent_id: "n0", depends_on: ["n1"] }), piece("n3", { parent_id: "n0" })];
    const { at } = layout([goal, ...tasks], []);
    expect(at.get("n2")!.x).toBeGreaterThan(at.get("n1")!.x);
    expect(at.get("n3")!.x).toBe(at.get("n1")!.x);
  });

  it("puts what needs another of its stage beside it", () => {
    const pair = [piece("n1", { parent_id: "n0", stage_id: "s1" }), piece("n2", { parent_id: "n0", stage_id: "s1", depends_on: ["n1"] })];
    const { at, lanes } = layout([goal, ...pair], steps);
    expect(at.get("n2")!.x).toBeGreaterThan(at.get("n1")!.x);
    expect(lanes).toHaveLength(2);
  });

  it("keeps children below their parent", () => {
    const inside = [piece("n1", { parent_id: "n0", stage_id: "s1" }), piece("n2", { parent_id: "n0", stage_id: "s1" }), piece("n3", { parent_id: "n1" })];
    expect(layout([goal, ...inside], steps).lanes[1]!.pieces).toEqual(["n1", "n3", "n2"]);
  });

  it("survives circles and strangers", () => {
    const odd = [piece("a", { depends_on: ["b", "gone"] }), piece("b", { depends_on: ["a"], parent_id: "b" }), piece("c", { parent_id: "gone", stage_id: "unknown" })];
    const { at } = layout(odd, []);
    expect([...at.keys()].sort()).toEqual(["a", "b", "c"]);
  });

  it("lays out a thousand quickly, without overlap", () => {
    const many: Piece[] = [goal];
    for (let n = 0; n < 1000; n++) {
      const stage = Math.floor(n / 100);
      many.push(
        piece(`p${String(n).padStart(4, "0")}`, {
          parent_id: "n0",
          stage_id: `s${stage}`,
          depends_on: stage > 0 ? [n - 100, n - 99 - (n % 3)].map((m) => `p${String(Math.max(0, m)).padStart(4, "0")}`) : [],
        }),
      );
    }
    const begun = performance.now();
    const { at, lanes } = layout(many, Array.from({ length: 10 }, (_, n) => ({ id: `s${n}`, name: `stage ${n}` })));
    expect(performance.now() - begun).toBeLessThan(1500);
    expect(at.size).toBe(1001);
    expect(lanes).toHaveLength(11);
    expect(Math.max(...[...at.values()].map((place) => place.y))).toBeLessThan((2 * ROWS + 1) * (CARD.height + 40));
    expect(overlaps(at)).toBe(false);
  });
});
