/** Bills: the rows of the cost tree, from the runs and what is unfolded. */
import type { Schemas } from "@/api/client";

export type Bill = Schemas["NodeCosts"];
export type Sum = Schemas["CostSum"];
export interface BillRow {
  bill: Bill;
  depth: number;
  hasMore: boolean;
  isOpen: boolean;
  /** Its share of everything, 0 to 1. */
  share: number;
}

const tokens = (sum: Sum | undefined): number => (sum ? sum.input_tokens + sum.output_tokens : 0);
export const tokensOf = tokens;

/** Dearest first; what cost no known money by its tokens. */
export function byWeight(a: Sum | undefined, b: Sum | undefined): number {
  return (b?.usd ?? 0) - (a?.usd ?? 0) || tokens(b) - tokens(a);
}

export function billRows(bills: readonly Bill[], open: ReadonlySet<string>, total: Sum, depth = 0): BillRow[] {
  const share = (sum: Sum | undefined): number => (total.usd > 0 ? (sum?.usd ?? 0) / total.usd : tokens(total) > 0 ? tokens(sum) / tokens(total) : 0);
  // Runs stand in the order of time, newest first; below them the dearest first.
  const sorted = depth === 0 ? [...bills].sort((a, b) => (a.node_id < b.node_id ? 1 : -1)) : [...bills].sort((a, b) => byWeight(a.total, b.total));
  return sorted.flatMap((bill) => {
    const below = bill.below ?? [];
    const isOpen = open.has(bill.node_id);
    const hasMore = below.length > 0 || (bill.lines ?? []).length > 0;
    const row: BillRow = { bill, depth, hasMore, isOpen, share: share(bill.total) };
    return isOpen ? [row, ...billRows(below, open, total, depth + 1)] : [row];
  });
}

/** The way from a run down to a node, the node last; empty if it is in none. */
export function trail(bills: readonly Bill[], node: string): string[] {
  for (const bill of bills) {
    if (bill.node_id === node) return [node];
    const below = trail(bill.below ?? [], node);
    if (below.length > 0) return [bill.node_id, ...below];
  }
  return [];
}
