import { describe, expect, it } from "vitest";
import { type Bill, billRows, type Sum, trail } from "@/views/cost/costTree";
import { slots, widthFor } from "@/views/cost/timeBuckets";

const sum = (usd: number, input_tokens = 0): Sum => ({ calls: 1, lost: 0, input_tokens, output_tokens: 0, cached_tokens: 0, usd, unpriced: 0 });
const bill = (node_id: string, usd: number, below: Bill[] = []): Bill => ({ node_id, title: node_id, lane: "work", agent_id: null, agent: "", lines: [], below, total: sum(usd) });
const HOUR = 3_600_000;

describe("bills", () => {
  const runs = [bill("n1", 4, [bill("n2", 1), bill("n3", 3, [bill("n4", 2)])]), bill("n5", 1)];
  it("shows the newest run first and the dearest part first", () => {
    expect(billRows(runs, new Set(["n1"]), sum(5)).map((row) => [row.bill.node_id, row.depth, row.share])).toEqual([["n5", 0, 0.2], ["n1", 0, 0.8], ["n3", 1, 0.6], ["n2", 1, 0.2]]);
  });
  it("compares tokens where no price is known", () => {
    expect(billRows([{ ...bill("a", 0), total: sum(0, 30) }], new Set(), sum(0, 60))[0]!.share).toBe(0.5);
  });
  it("finds the way to a node", () => {
    expect(trail(runs, "n4")).toEqual(["n1", "n3", "n4"]);
    expect(trail(runs, "gone")).toEqual([]);
  });
});

describe("slots", () => {
  it("has nothing for nothing", () => expect(slots([], "usd").slots).toEqual([]));
  it("takes slots that fit the time", () => {
    expect(widthFor(0, 20 * 60_000)).toBe(60_000);
    expect(widthFor(0, 40 * HOUR)).toBe(HOUR);
    expect(widthFor(0, 40 * 24 * HOUR)).toBe(24 * HOUR);
  });
  it("keeps empty slots and sums by agent", () => {
    const spent = [
      { at: 0, usd: 1, tokens: 5, agent: "a" },
      { at: 10 * HOUR, usd: 2, tokens: 5, agent: "a" },
      { at: 10 * HOUR + 1, usd: 3, tokens: 5, agent: "b" },
    ];
    const { width, slots: found } = slots(spent, "usd", 0);
    expect(width).toBe(15 * 60_000);
    expect(found).toHaveLength(41);
    expect(found.at(-1)).toMatchObject({ usd: 5, calls: 2, parts: [{ agent: "b", value: 3 }, { agent: "a", value: 2 }] });
  });
  it("begins days where the reader's do", () => {
    const spent = [0, 40 * 24 * HOUR].map((at) => ({ at, usd: 1, tokens: 0, agent: "a" }));
    expect(new Date(slots(spent, "usd", 120).slots[0]!.from).toISOString()).toBe("1969-12-31T22:00:00.000Z");
  });
});
