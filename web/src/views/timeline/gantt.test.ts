import { describe, expect, it } from "vitest";
import { axisMarks, barExtent, costAt, eventAt, layoutChart, pieceAt, step, titleExtent } from "@/views/timeline/gantt";
import type { Phase, Span } from "@/views/timeline/phases";

const BEGIN = Date.parse("2026-11-17T09:00:00Z");
const at = (seconds: number): string => new Date(BEGIN + seconds * 1000).toISOString();
const span = (node: string, number: number, phase: Phase, from: number, to: number | null, more: Partial<Span> = {}): Span => ({
  node_id: node,
  agent_id: "a1",
  number,
  phase,
  start: at(from),
  end: to === null ? null : at(to),
  seq: number,
  attempt: 1,
  label: "",
  failed: false,
  tokens: 0,
  usd: null,
  ...more,
});

const spans = [
  span("n1", 1, "queued", 0, 10),
  span("n1", 2, "model", 10, 15, { usd: 0.02 }),
  span("n1", 3, "person", 15, 100),
  span("n1", 4, "model", 100, 110, { usd: 0.03 }),
  span("n2", 1, "model", 20, 40, { usd: 0.05 }),
  span("n3", 1, "model", 120, null),
  span("n1", 5, "model", 500, 510),
  span("m1", 1, "tool", 5, 30, { agent_id: "a0" }),
];
const chart = layoutChart(spans, [], ["a0", "a1"], BEGIN + 600_000);

describe("the chart of a timeline", () => {
  it("has a lane for each agent and a row for bars that overlap", () => {
    expect(chart.lanes.map(({ agentId, firstRow, rows }) => [agentId, firstRow, rows])).toEqual([["a0", 0, 1], ["a1", 1, 2]]);
    expect(chart.lanes[1]!.bars.map(({ nodeId, row, pieces }) => [nodeId, row, pieces.map((one) => one.span.phase)])).toEqual([
      ["n1", 0, ["model", "person", "model"]],
      ["n2", 1, ["model"]],
      ["n3", 0, ["model"]],
      ["n1", 1, ["model"]],
    ]);
    expect([chart.from, chart.to]).toEqual([BEGIN + 5000, BEGIN + 600_000]);
  });

  it("has the times in which all work was stopped; one that lasts goes on until now", () => {
    const { stops } = layoutChart(spans, [], [], BEGIN + 600_000, [{ start: at(50), end: at(90) }, { start: at(300), end: null }]);
    expect(stops).toEqual([{ from: BEGIN + 50_000, to: BEGIN + 90_000 }, { from: BEGIN + 300_000, to: BEGIN + 600_000 }]);
  });

  it("adds up cost over time, and time by phase", () => {
    expect([0, 15, 40, 999].map((seconds) => costAt(chart, BEGIN + seconds * 1000).toFixed(2))).toEqual(["0.00", "0.02", "0.07", "0.10"]);
    expect(chart.totals.get("person")).toBe(85_000);
  });

  it("finds the piece under the pointer, also one that is too narrow to hit", () => {
    expect(pieceAt(chart, 1, BEGIN + 50_000, 0)?.piece.span.phase).toBe("person");
    expect(pieceAt(chart, 1, BEGIN + 8_000, 3000)?.piece.span.phase).toBe("model");
    expect(pieceAt(chart, 1, BEGIN + 8_000, 1000)).toBeNull();
    expect(pieceAt(chart, 9, BEGIN, 1e9)).toBeNull();
  });

  it("is walked with the arrow keys", () => {
    const walk = ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "End", "Home"];
    const places: unknown[] = [];
    walk.reduce((place, key) => {
      const next = step(chart, place, key);
      places.push(next && [next.lane, next.bar, next.piece]);
      return next;
    }, null as ReturnType<typeof step>);
    expect(places).toEqual([[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]);
  });

  it("knows the last event before a bar, to replay the run from there", () => {
    const tick = { seq: 7, at: at(20), kind: "tool" as const, agent_id: "a1", node_id: "n1", label: "bash", failed: false };
    const known = [span("n1", 1, "queued", 0, 10, { seq: 3 }), span("n1", 2, "model", 10, 15, { seq: 5 }), span("n1", 3, "tool", 15, null, { seq: 0 })];
    expect([0, 10, 15, 30].map((second) => eventAt(known, [tick], BEGIN + second * 1000))).toEqual([1, 3, 5, 7]);
  });

  it("shows short work with a width that is seen, inside the picture", () => {
    const frame = { left: 100, right: 500 };
    const drawn = [[200, 300], [200, 201], [499.5, 499.9], [50, 101], [20, 90], [501, 600]].map(([left, right]) => barExtent(left!, right!, frame, 6));
    expect(drawn).toEqual([{ x: 200, width: 100 }, { x: 200, width: 6 }, { x: 494, width: 6 }, { x: 100, width: 1 }, null, null]);
  });

  it("writes titles beside short work, and the last one of a row inside the picture", () => {
    const right = { right: 500 };
    expect(titleExtent({ x: 200, next: Infinity }, 80, right, 100, 46)).toEqual({ x: 200, width: 300 });
    expect(titleExtent({ x: 200, next: 260 }, 80, right, 100, 46)).toEqual({ x: 200, width: 60 });
    expect(titleExtent({ x: 200, next: 230 }, 80, right, 100, 46)).toBeNull();
    expect(titleExtent({ x: 494, next: Infinity }, 80, right, 100, 46)).toEqual({ x: 420, width: 80 });
    expect(titleExtent({ x: 494, next: Infinity }, 80, right, 430, 46)).toEqual({ x: 430, width: 70 });
    expect(titleExtent({ x: 494, next: Infinity }, 80, right, 480, 46)).toBeNull();
    expect(chart.lanes[1]!.bars.map(({ nextFrom }) => (nextFrom - BEGIN) / 1000)).toEqual([120, 500, Infinity, Infinity]);
  });

  it("marks round times on its axis", () => {
    const { marks, stepMs } = axisMarks(BEGIN + 1, BEGIN + 600_000, 8);
    expect(stepMs).toBe(120_000);
    expect(marks.map((one) => (one - BEGIN) / 60_000)).toEqual([2, 4, 6, 8, 10]);
  });
});
