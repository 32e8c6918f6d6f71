/**
 * Stacks: many alike siblings on the board, folded into one card.
 *
 * Siblings are alike if their titles differ only in numbers or quoted words ("Translate page 7"), or begin with the
 * same two words. A board that is still too long folds the rest of each family too. A closed stack stands for its
 * members: dependencies and parents that name a member name the stack instead.
 */
import type { LayoutNode } from "@/views/board/layout";

export interface StackableNode extends LayoutNode {
  title: string;
}
export interface Stack {
  id: string;
  title: string;
  nodeIds: string[];
  isOpen: boolean;
}
interface StackedBoard {
  /** The nodes to lay out: each stack once, and the tasks that no closed stack hides. */
  nodes: LayoutNode[];
  stacks: Map<string, Stack>;
  /** The stack of each task that belongs to one, open or closed. */
  stackOf: Map<string, string>;
}

/** A board with fewer tasks shows each of them. */
const MIN_TASKS = 30;
/** Fewer alike siblings are not worth a stack. */
const MIN_MEMBERS = 8;
/** A board with more cards than this folds siblings that are not alike, too. */
const MANY_CARDS = 60;

/** Ids sort by time: a stack stands where its oldest member would. */
const stackId = (firstMember: string): string => `${firstMember}*`;
const isStackId = (id: string): boolean => id.endsWith("*");

const pattern = (title: string): string =>
  title
    .toLowerCase()
    .replace(/"[^"]*"|“[^”]*”|‘[^’]*’|`[^`]*`/g, "…")
    .replace(/\p{N}+/gu, "…")
    .replace(/\s+/g, " ")
    .trim();
const firstWords = (title: string): string | null => title.toLowerCase().match(/^\s*(\S+\s+\S+)\s/)?.[1] ?? null;

/** Return the words at the start and the end that all titles share, with an ellipsis for what differs. */
export function sharedTitle(titles: readonly string[]): string {
  const split = titles.map((title) => title.trim().split(/\s+/));
  const first = split[0] ?? [];
  const shortest = Math.min(...split.map((words) => words.length));
  let start = 0;
  while (start < shortest && split.every((words) => words[start] === first[start])) start++;
  let end = 0;
  while (end < shortest - start && split.every((words) => words.at(-1 - end) === first.at(-1 - end))) end++;
  const kept = [...first.slice(0, start), "…", ...first.slice(first.length - end)];
  return kept.length === 1 ? "" : kept.join(" ");
}

/** Return the board with its alike siblings stacked. `isOpen` says which stacks a person has opened. */
export function stackBoard(all: readonly StackableNode[], isOpen: (stack: string) => boolean): StackedBoard {
  const stacks = new Map<string, Stack>();
  const stackOf = new Map<string, string>();
  if (all.length >= MIN_TASKS) {
    const sorted = [...all].sort((a, b) => (a.id < b.id ? -1 : 1));
    const fold = (keyOf: (node: StackableNode) => string | null, fewest: number, title: (members: StackableNode[]) => string): void => {
      for (const members of families(sorted, stackOf, keyOf, fewest)) {
        const id = stackId(members[0]!.id);
        stacks.set(id, { id, title: title(members), nodeIds: members.map((node) => node.id), isOpen: isOpen(id) });
        for (const node of members) stackOf.set(node.id, id);
      }
    };
    const shared = (members: StackableNode[]): string => sharedTitle(members.map((node) => node.title)) || members[0]!.title;
    fold((node) => pattern(node.title), MIN_MEMBERS, shared);
    fold((node) => firstWords(node.title), MIN_MEMBERS, shared);
    if (all.length - stackOf.size + stacks.size > MANY_CARDS) fold(() => "", MIN_MEMBERS, () => "More tasks");
  }
  return { nodes: foldedNodes(all, stacks, stackOf), stacks, stackOf };
}

/** Return the groups of siblings with one key. Children of a stack's members are siblings. */
function families(sorted: readonly StackableNode[], stackOf: ReadonlyMap<string, string>, keyOf: (node: StackableNode) => string | null, fewest: number): StackableNode[][] {
  const groups = new Map<string, StackableNode[]>();
  for (const node of sorted) {
    const key = stackOf.has(node.id) ? null : keyOf(node);
    if (key === null) continue;
    const family = JSON.stringify([node.stage_id, stackOf.get(node.parent_id ?? "") ?? node.parent_id, key]);
    const group = groups.get(family);
    if (group) group.push(node);
    else groups.set(family, [node]);
  }
  return [...groups.values()].filter((group) => group.length >= fewest);
}

function foldedNodes(all: readonly StackableNode[], stacks: ReadonlyMap<string, Stack>, stackOf: ReadonlyMap<string, string>): LayoutNode[] {
  if (stacks.size === 0) return [...all];
  const shownAs = (id: string): string => {
    const stack = stackOf.get(id);
    return stack !== undefined && !stacks.get(stack)!.isOpen ? stack : id;
  };
  const folded = new Map<string, { id: string; parent_id: string | null; depends_on: Set<string>; stage_id: string | null }>();
  for (const node of all) {
    const ids = new Set([shownAs(node.id), stackOf.get(node.id) ?? node.id]);
    for (const id of ids) {
      let shown = folded.get(id);
      const parent = node.parent_id === null ? null : shownAs(node.parent_id);
      if (!shown) folded.set(id, (shown = { id, parent_id: parent === id ? null : parent, depends_on: new Set(), stage_id: node.stage_id }));
      // An open stack is only the heading of its members: the lines lead to them.
      if (isStackId(id) && stacks.get(id)!.isOpen) continue;
      for (const need of node.depends_on) if (shownAs(need) !== id) shown.depends_on.add(shownAs(need));
    }
  }
  return [...folded.values()].map((node) => ({ ...node, depends_on: [...node.depends_on] }));
}

/** Return the order of cards before a stack was opened or closed, with its new cards in the same places. */
export function refoldOrder(order: ReadonlyMap<string, readonly string[]> | undefined, board: StackedBoard): Map<string, string[]> | undefined {
  if (!order) return undefined;
  const shown = new Set(board.nodes.map((node) => node.id));
  const next = new Map<string, string[]>();
  for (const [lane, ids] of order) {
    const kept = new Set<string>();
    for (const id of ids) {
      const stack = isStackId(id) ? id : board.stackOf.get(id);
      if (stack !== undefined && board.stacks.has(stack)) {
        kept.add(stack);
        if (board.stacks.get(stack)!.isOpen) for (const member of board.stacks.get(stack)!.nodeIds) kept.add(member);
      } else if (shown.has(id)) kept.add(id);
    }
    next.set(lane, [...kept]);
  }
  return next;
}
