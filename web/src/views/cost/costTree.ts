/** Bills: the rows of the cost tree, from the runs and what is unfolded. */
import type { Schemas } from "@/api/client";

export type NodeCosts = Schemas["NodeCosts"];
export type CostSum = Schemas["CostSum"];
export interface CostRow {
  node: NodeCosts;
  depth: number;
  hasMore: boolean;
  isOpen: boolean;
  /** Its share of everything, 0 to 1. */
  share: number;
}

const tokens = (sum: CostSum | undefined): number => (sum ? sum.input_tokens + sum.output_tokens : 0);
export const tokensOf = tokens;

/** Dearest first; what cost no known money by its tokens. */
export function byCost(a: CostSum | undefined, b: CostSum | undefined): number {
  return (b?.usd ?? 0) - (a?.usd ?? 0) || tokens(b) - tokens(a);
}

export function costRows(nodes: readonly NodeCosts[], open: ReadonlySet<string>, total: CostSum, depth = 0): CostRow[] {
  const share = (sum: CostSum | undefined): number => (total.usd > 0 ? (sum?.usd ?? 0) / total.usd : tokens(total) > 0 ? tokens(sum) / tokens(total) : 0);
  // Runs stand in the order of time, newest first; below them the dearest first.
  const sorted = depth === 0 ? [...nodes].sort((a, b) => (a.node_id < b.node_id ? 1 : -1)) : [...nodes].sort((a, b) => byCost(a.total, b.total));
  return sorted.flatMap((node) => {
    const below = node.below ?? [];
    const isOpen = open.has(node.node_id);
    const hasMore = below.length > 0 || (node.lines ?? []).length > 0;
    const row: CostRow = { node, depth, hasMore, isOpen, share: share(node.total) };
    return isOpen ? [row, ...costRows(below, open, total, depth + 1)] : [row];
  });
}

/** The way from a run down to a node, the node last; empty if it is in none. */
export function pathTo(nodes: readonly NodeCosts[], nodeId: string): string[] {
  for (const node of nodes) {
    if (node.node_id === nodeId) return [nodeId];
    const below = pathTo(node.below ?? [], nodeId);
    if (below.length > 0) return [node.node_id, ...below];
  }
  return [];
}
