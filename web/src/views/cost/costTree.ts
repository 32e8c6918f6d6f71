/** Cost tree: the visible rows of the table of runs and their tasks. */
import type { Schemas } from "@/api/client";
import { capitalize, compactNumber, money, plural } from "@/lib/format";

export type NodeCosts = Schemas["NodeCosts"];
export type TeamCosts = Schemas["TeamCosts"];
/** What a node has cost with the nodes below it. */
export interface Bill extends NodeCosts {
  below: Bill[];
  total: CostSum;
}
export type CostSum = Schemas["CostSum"];
interface CostRow {
  node: Bill;
  depth: number;
  hasMore: boolean;
  isOpen: boolean;
  /** The share of the team's total, 0 to 1. */
  share: number;
}

const tokens = (sum: CostSum | undefined): number => (sum ? sum.input_tokens + sum.output_tokens : 0);
export const tokensOf = tokens;

export const NO_COST: CostSum = { calls: 0, searches: 0, lost: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cache_write_tokens: 0, thinking_tokens: 0, usd: 0, unpriced: 0, estimated: 0 };

/** Return the number of model calls, as boards count them: also those without an answer, and no web searches. */
export const modelCalls = (sum: CostSum): number => sum.calls + sum.lost;

export const addSums = (a: CostSum, b: CostSum): CostSum => Object.fromEntries(Object.keys(NO_COST).map((name) => [name, a[name as keyof CostSum] + b[name as keyof CostSum]])) as unknown as CostSum;

/** Return how many calls a sum has; of a sum of web searches alone, how many searches. */
export const callsText = (sum: CostSum): string => (modelCalls(sum) === 0 && sum.searches > 0 ? plural(sum.searches, "search", "searches") : compactNumber(modelCalls(sum)));

/** Return the share of the input that came from vendors' caches, in percent; null without any input. */
export const hitRate = (sum: CostSum): number | null => (sum.input_tokens > 0 ? Math.round((100 * sum.cached_tokens) / sum.input_tokens) : null);

export function hitRateText(sum: CostSum): string {
  const rate = hitRate(sum);
  return rate === null ? "–" : `${rate}%`;
}

/** Return which tokens a sum consists of. */
export function tokensText(sum: CostSum): string {
  return [
    `${compactNumber(sum.input_tokens)} input`,
    `${compactNumber(sum.cached_tokens)} of them from the cache`,
    `${compactNumber(sum.cache_write_tokens)} stored in the cache`,
    `${compactNumber(sum.output_tokens)} output`,
    `${compactNumber(sum.thinking_tokens)} of them thinking`,
  ].join("\n");
}

/** Return the cost as text. Part of it may be estimated, or of calls without a known price. */
export function costText(sum: CostSum): string {
  if (sum.usd === 0 && sum.unpriced > 0) return "no price";
  return `${sum.estimated > 0 ? "about " : sum.unpriced > 0 ? "over " : ""}${money(sum.usd)}`;
}

/** Return what a team has spent apart from its goal; with what the goal has used it is the team's total. */
export function otherWork(total: CostSum, budget: Schemas["GoalBudget"]): { usd: number; tokens: number } {
  const used = (name: "usd" | "tokens"): number => budget.limits.find((limit) => limit.name === name)?.used ?? 0;
  return { usd: Math.max(0, Math.round((total.usd - used("usd")) * 1e6) / 1e6), tokens: Math.max(0, tokens(total) - used("tokens")) };
}

/** Compare by cost, highest first; costs without a known price by their tokens. */
export function byCost(a: CostSum | undefined, b: CostSum | undefined): number {
  return (b?.usd ?? 0) - (a?.usd ?? 0) || tokens(b) - tokens(a);
}

/** Return the trees of the nodes of all pages. */
export function joinRuns(pages: readonly NodeCosts[][]): Bill[] {
  const each = (nodes: readonly NodeCosts[]): NodeCosts[] => nodes.flatMap((node) => [node, ...each(node.below ?? [])]);
  const bills = new Map(pages.flatMap(each).map((node) => [node.node_id, { ...node, below: [], total: NO_COST } as Bill]));
  const runs: Bill[] = [];
  for (const bill of bills.values()) (bills.get(bill.above_id ?? "")?.below ?? runs).push(bill);
  const addUp = (bill: Bill): CostSum => (bill.total = [...(bill.lines ?? []).map((line) => line.sum), ...bill.below.map(addUp)].reduce(addSums, NO_COST));
  runs.forEach(addUp);
  return runs;
}

export function costRows(nodes: readonly Bill[], open: ReadonlySet<string>, total: CostSum, depth = 0): CostRow[] {
  const share = (sum: CostSum): number => (total.usd > 0 ? sum.usd / total.usd : tokens(total) > 0 ? tokens(sum) / tokens(total) : 0);
  // Runs are sorted by time, newest first (ids sort by time); the tasks below them by cost.
  const sorted = depth === 0 ? [...nodes].sort((a, b) => (a.node_id < b.node_id ? 1 : -1)) : [...nodes].sort((a, b) => byCost(a.total, b.total));
  return sorted.flatMap((node) => {
    const isOpen = open.has(node.node_id);
    const hasMore = node.below.length > 0 || (node.lines ?? []).length > 0;
    const row: CostRow = { node, depth, hasMore, isOpen, share: share(node.total) };
    return isOpen ? [row, ...costRows(node.below, open, total, depth + 1)] : [row];
  });
}

/** Return the ids from a run down to the node, or an empty list if no run contains it. */
export function pathTo(nodes: readonly Bill[], nodeId: string): string[] {
  for (const node of nodes) {
    if (node.node_id === nodeId) return [nodeId];
    const below = pathTo(node.below, nodeId);
    if (below.length > 0) return [node.node_id, ...below];
  }
  return [];
}

const PURPOSE_LABELS: Record<string, string> = { work: "Work", reply: "Replies", reflection: "Reflection", compaction: "Summaries", briefing: "Briefings", harvest: "Reflection", search: "Web searches", "side call": "Titles and tags" };
export const purposeLabel = (name: string): string => PURPOSE_LABELS[name] ?? capitalize(name.replaceAll("_", " "));
