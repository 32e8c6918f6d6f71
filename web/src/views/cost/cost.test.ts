import { describe, expect, it } from "vitest";
import { otherLimits } from "@/views/settings/budgetFields";
import { addSums, type Bill, callsText, costRows, type CostSum, costText, hitRate, hitRateText, joinRuns, NO_COST, type NodeCosts, otherWork, pathTo, tokensText } from "@/views/cost/costTree";
import { costDays, type DayPart, MOST_PARTS, paceText } from "@/views/cost/costDays";

const sum = (usd: number, input_tokens = 0): CostSum => ({ calls: 1, searches: 0, lost: 0, input_tokens, output_tokens: 0, cached_tokens: 0, cache_write_tokens: 0, thinking_tokens: 0, usd, unpriced: 0, estimated: 0 });
const node = (node_id: string, usd: number, below: Bill[] = []): Bill => ({ node_id, above_id: null, title: node_id, lane: "work", agent_id: null, agent: "", lines: [], below, total: sum(usd) });

describe("the limits of the next goal", () => {
  it("are named but for money, which has a field", () => {
    const use = { used: 1, left: null };
    const limits = [{ name: "usd" as const, limit: 5, ...use }, { name: "tokens" as const, limit: null, ...use }, { name: "turns" as const, limit: 1000, ...use }, { name: "seconds" as const, limit: 86_400, ...use }];
    expect(otherLimits({ node_id: "node_1", limits, waits: null })).toBe("1,000 turns, 24h of working time");
  });
});

describe("sums of costs", () => {
  it("add up every count", () => {
    const one: CostSum = { calls: 1, searches: 11, lost: 2, input_tokens: 3, output_tokens: 4, cached_tokens: 5, cache_write_tokens: 6, thinking_tokens: 7, usd: 8, unpriced: 9, estimated: 10 };
    expect(addSums(NO_COST, one)).toEqual(one);
    expect(addSums(one, one).thinking_tokens).toBe(14);
  });

  it("count model calls as the board does, with those that were lost and without searches", () => {
    expect([callsText({ ...sum(1), calls: 4, lost: 2, searches: 3 }), callsText({ ...sum(1), calls: 0, searches: 1 }), callsText(NO_COST)]).toEqual(["6", "1 search", "0"]);
  });

  it("say what share of the input came from caches", () => {
    expect([hitRate({ ...sum(1, 200), cached_tokens: 150 }), hitRate(sum(1, 200)), hitRate(sum(1))]).toEqual([75, 0, null]);
    expect([hitRateText({ ...sum(1, 200), cached_tokens: 150 }), hitRateText(sum(1))]).toEqual(["75%", "–"]);
  });

  it("of the goal and of other work are together what the team has spent", () => {
    const limits = [{ name: "usd", limit: 2, used: 0.1, left: 1.9 }, { name: "tokens", limit: null, used: 5_100, left: null }] as const;
    expect(otherWork({ ...sum(0.3, 9_900), output_tokens: 100 }, { node_id: "n1", limits: [...limits], waits: null })).toEqual({ usd: 0.2, tokens: 4_900 });
    expect(otherWork(NO_COST, { node_id: "n1", limits: [], waits: null })).toEqual({ usd: 0, tokens: 0 });
  });

  it("say which tokens they consist of", () => {
    const all: CostSum = { ...sum(1, 4000), cached_tokens: 3000, cache_write_tokens: 500, output_tokens: 200, thinking_tokens: 90 };
    expect(tokensText(all).split("\n")).toEqual(["4.0k input", "3.0k of them from the cache", "500 stored in the cache", "200 output", "90 of them thinking"]);
  });

  it("mark costs that are estimated or not known", () => {
    expect([costText(sum(0.5)), costText({ ...sum(0.5), estimated: 1 }), costText({ ...sum(0), unpriced: 1 }), costText({ ...sum(0.5), unpriced: 1 })]).toEqual(["$0.50", "about $0.50", "no price", "over $0.50"]);
  });
});

describe("the cost tree", () => {
  const runs = [node("n1", 4, [node("n2", 1), node("n3", 3, [node("n4", 2)])]), node("n5", 1)];
  it("sorts runs by time and tasks by cost", () => {
    expect(costRows(runs, new Set(["n1"]), sum(5)).map((row) => [row.node.node_id, row.depth, row.share])).toEqual([["n5", 0, 0.2], ["n1", 0, 0.8], ["n3", 1, 0.6], ["n2", 1, 0.2]]);
  });
  it("adds up what is below a node, whichever page has it", () => {
    const own = (node_id: string, above_id: string | null, usd: number): NodeCosts => ({ node_id, above_id, title: node_id, lane: "work", agent_id: null, agent: "", lines: [{ purpose: "work", model: "m", sum: sum(usd) }], total: NO_COST });
    const [first, second, ...more] = joinRuns([[{ ...own("n3", "n2", 4), below: [own("n5", "n3", 16)] }], [own("n1", null, 1), own("n2", "n1", 2), own("n4", "not listed", 8)]]);
    expect([first!.node_id, first!.total.usd, first!.below.map((bill) => [bill.node_id, bill.total.usd])]).toEqual(["n1", 23, [["n2", 22]]]);
    expect([second!.node_id, second!.total.usd, more]).toEqual(["n4", 8, []]);
  });
  it("compares tokens where no price is known", () => {
    expect(costRows([{ ...node("a", 0), total: sum(0, 30) }], new Set(), sum(0, 60))[0]!.share).toBe(0.5);
  });
  it("finds the path to a node", () => {
    expect(pathTo(runs, "n4")).toEqual(["n1", "n3", "n4"]);
    expect(pathTo(runs, "gone")).toEqual([]);
  });
});

describe("the cost by day", () => {
  const part = (day: string, key: string, usd: number, tokens = 0): DayPart => ({ day, key, name: key, calls: 1, tokens, usd, unpriced: 0 });
  const days = (parts: DayPart[]) => costDays(parts, "2030-05-01", "2030-05-06", ({ name }) => name);

  it("has all days since the first cost, and the largest part first", () => {
    const { measure, series, days: found } = days([part("2030-05-04", "a", 1), part("2030-05-06", "a", 1), part("2030-05-06", "b", 4)]);
    expect([measure, series.map(({ name, total }) => [name, total])]).toEqual(["usd", [["b", 4], ["a", 2]]]);
    expect(found.map(({ day, total, values }) => [day, total, values])).toEqual([["2030-05-04", 1, [0, 1]], ["2030-05-05", 0, [0, 0]], ["2030-05-06", 5, [4, 1]]]);
  });
  it("joins small parts, and counts tokens where no price is known", () => {
    const many = Array.from({ length: MOST_PARTS + 3 }, (_, n) => part("2030-05-06", `m${n}`, 0, 10 - n));
    const { measure, series, days: found } = days(many);
    expect([measure, series.length, series.at(-1)]).toEqual(["tokens", MOST_PARTS + 1, { key: "others", name: "3 others", total: 5 + 4 + 3 }]);
    expect(found[0]!.values).toEqual([10, 9, 8, 7, 6, 12]);
    expect(days(many.slice(0, MOST_PARTS + 1)).series.at(-1)!.name).toBe("m5");
  });
  it("says what the day will cost at its pace", () => {
    const today = { day: "2030-05-06", usd: 2, allowed_usd: 0, is_reached: false, limit_usd: 20, forecast_usd: 8 };
    const dollars = (usd: number) => `$${usd}`;
    expect(paceText(today, dollars)).toBe("At today’s pace $8 by midnight UTC; the limit is $20.");
    expect(paceText({ ...today, limit_usd: null }, dollars)).toBe("At today’s pace $8 by midnight UTC; there is no daily limit.");
    expect([paceText({ ...today, forecast_usd: null }, dollars), paceText({ ...today, is_reached: true }, dollars)]).toEqual(["", ""]);
  });
});
