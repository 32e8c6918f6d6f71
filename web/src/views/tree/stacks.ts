/**
 * Stacks: many alike siblings of the tree below one card of their own.
 *
 * Siblings are alike if their titles differ only in numbers or quoted words ("Translate page 7"), or begin with the
 * same two words. A board that is still too long stacks the rest of each family too, but for those that gave away work.
 */
import type { LayoutNode } from "@/views/tree/layout";

export interface StackableNode extends LayoutNode {
  title: string;
}
export interface Stack {
  id: string;
  title: string;
  nodeIds: string[];
}

/** A board with fewer tasks shows each of them. */
const MIN_TASKS = 30;
/** Fewer alike siblings are not worth a stack; those with work of their own are a part of the organisation each. */
const MIN_MEMBERS = 8;
const MIN_PARENTS = 20;
/** A board with more cards than this stacks siblings that are not alike, too. */
const MANY_CARDS = 60;

/** Ids sort by time: a stack stands where its oldest member would. */
const stackId = (firstMember: string): string => `${firstMember}*`;

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

/** Return the tasks with a stack above each family of alike ones, and the stacks by their ids. */
export function stackAlike(all: readonly StackableNode[]): { nodes: LayoutNode[]; stacks: Map<string, Stack> } {
  const stacks = new Map<string, Stack>();
  if (all.length < MIN_TASKS) return { nodes: [...all], stacks };
  const stackOf = new Map<string, string>();
  const sorted = [...all].sort((a, b) => (a.id < b.id ? -1 : 1));
  const parents = new Set(all.map((node) => node.parent_id));
  const gather = (keyOf: (node: StackableNode) => string | null, title: (members: StackableNode[]) => string): void => {
    const groups = new Map<string, StackableNode[]>();
    for (const node of sorted) {
      const key = stackOf.has(node.id) ? null : keyOf(node);
      if (key === null) continue;
      const family = JSON.stringify([node.stage_id, node.parent_id, parents.has(node.id), key]);
      const group = groups.get(family);
      if (group) group.push(node);
      else groups.set(family, [node]);
    }
    for (const members of groups.values()) {
      if (members.length < (parents.has(members[0]!.id) ? MIN_PARENTS : MIN_MEMBERS)) continue;
      const id = stackId(members[0]!.id);
      stacks.set(id, { id, title: title(members), nodeIds: members.map((node) => node.id) });
      for (const node of members) stackOf.set(node.id, id);
    }
  };
  const shared = (members: StackableNode[]): string => sharedTitle(members.map((node) => node.title)) || members[0]!.title;
  gather((node) => pattern(node.title), shared);
  gather((node) => firstWords(node.title), shared);
  if (all.length - stackOf.size + stacks.size > MANY_CARDS) gather((node) => (parents.has(node.id) ? null : ""), () => "More tasks");
  const nodes = sorted.map(({ id, parent_id, depends_on, stage_id }): LayoutNode => {
    const stack = stackOf.get(id);
    return { id, depends_on, parent_id: stack ?? parent_id, stage_id: stack === undefined ? stage_id : null };
  });
  const byId = new Map(all.map((node) => [node.id, node]));
  for (const { id, nodeIds } of stacks.values()) {
    const { parent_id, stage_id } = byId.get(nodeIds[0]!)!;
    nodes.push({ id, parent_id, stage_id, depends_on: [] });
  }
  return { nodes, stacks };
}
