/** Folds: the tasks of the tree that hide what is below them. What a person has folded is kept in this browser, for each team. */
import { useCallback, useMemo, useRef, useState } from "react";
import { isFinished, type NodeStatus } from "@/lib/endings";
import { readStored, writeStored } from "@/lib/storage";
import type { LayoutNode } from "@/views/tree/layout";
import type { Stack } from "@/views/tree/stacks";
import { asTree, type Branch } from "@/views/tree/tree";

/** A tree with more cards than this shows finished work folded at first; with more than the second, also work that nobody has begun. */
const MANY_CARDS = 40;
const TOO_MANY_CARDS = 120;

/** Where a card stands in the tree. */
export interface Place {
  parent: string | null;
  /** From 1, for the first tasks. */
  level: number;
  /** The tasks below it, without stacks. */
  below: readonly string[];
  isFolded: boolean;
}
export interface FoldedTree {
  /** Those that no folded task hides. */
  nodes: LayoutNode[];
  places: Map<string, Place>;
  /** The card that shows each task: its own, or that of the task that hides it. */
  shownBy: Map<string, string>;
  /** All that have tasks below them, also hidden ones. */
  parents: string[];
}

type Progress = "finished" | "not begun" | "under way";

export function progressOf(node: { status: NodeStatus } | undefined): Progress {
  const status = node?.status ?? "pending";
  return isFinished(status) ? "finished" : status === "pending" || status === "assigned" ? "not begun" : "under way";
}

/** Return the tasks that are folded at first: the highest ones with nothing but finished work below them, if there are many cards. */
export function foldedAtFirst(nodes: readonly LayoutNode[], stacks: ReadonlyMap<string, Stack>, progressOf: (id: string) => Progress): Set<string> {
  const tree = branchesOf(nodes);
  const folded = new Set(stacks.keys());
  const parents = new Set(nodes.map((node) => node.parent_id));
  const lastRoot = tree.findLast(({ depth }) => depth === 0)?.part.id;
  const foldWhere = (isQuiet: (progress: Progress) => boolean): void => {
    const quiet = new Set<string>();
    // From below: a task is quiet if all that is below it is.
    const hasLoudBelow = new Set<string | null>();
    for (const { part } of tree.toReversed()) {
      if (!hasLoudBelow.has(part.id) && (stacks.has(part.id) || isQuiet(progressOf(part.id)))) quiet.add(part.id);
      else hasLoudBelow.add(part.parent_id);
    }
    for (const { part } of tree) if (quiet.has(part.id) && parents.has(part.id) && part.id !== lastRoot) folded.add(part.id);
  };
  const countShown = (): number => foldTree(nodes, stacks, (id) => folded.has(id)).nodes.length;
  if (countShown() > MANY_CARDS) foldWhere((progress) => progress === "finished");
  if (countShown() > TOO_MANY_CARDS) foldWhere((progress) => progress !== "under way");
  return folded;
}

/** Return the tree without what is below folded tasks. */
export function foldTree(nodes: readonly LayoutNode[], stacks: ReadonlyMap<string, Stack>, isFolded: (id: string) => boolean): FoldedTree {
  const shown: LayoutNode[] = [];
  const shownBy = new Map<string, string>();
  const places = new Map<string, Place & { below: string[] }>();
  const parents = new Set<string>();
  const above: { id: string; depth: number; isHidden: boolean }[] = [];
  for (const { part, depth } of branchesOf(nodes)) {
    while (above.length > depth) above.pop();
    const parent = above.at(-1);
    if (parent) parents.add(parent.id);
    const isHidden = parent !== undefined && (parent.isHidden || isFolded(parent.id));
    if (!stacks.has(part.id)) for (const { id } of above) places.get(id)?.below.push(part.id);
    if (isHidden) shownBy.set(part.id, shownBy.get(parent.id)!);
    else {
      places.set(part.id, { parent: parent?.id ?? null, level: depth + 1, below: [], isFolded: isFolded(part.id) });
      shownBy.set(part.id, part.id);
      shown.push(part);
    }
    above.push({ id: part.id, depth, isHidden });
  }
  for (const place of places.values()) place.isFolded &&= place.below.length > 0;
  return { nodes: shown, places, shownBy, parents: [...parents] };
}

/** Ids sort by time: a task comes after its parent and after older siblings. */
const branchesOf = (nodes: readonly LayoutNode[]): Branch<LayoutNode>[] => asTree([...nodes].sort((a, b) => (a.id < b.id ? -1 : 1)));

interface Kept {
  folded: Record<string, boolean>;
}

/** Return the folded tree of a team, and what folds and unfolds it. */
export function useFolds(team: string, nodes: readonly LayoutNode[], stacks: ReadonlyMap<string, Stack>, progressOf: (id: string) => Progress) {
  const [chosen, setChosen] = useState(() => ({ team, ...readKept(team) }));
  if (chosen.team !== team) setChosen({ team, ...readKept(team) });
  // Decided once: work that ends while a person looks at it stays where it is.
  const first = useRef<{ team: string; folded: Set<string> } | null>(null);
  if (nodes.length > 0 && first.current?.team !== team) first.current = { team, folded: foldedAtFirst(nodes, stacks, progressOf) };
  const tree = useMemo(() => foldTree(nodes, stacks, (id) => chosen.folded[id] ?? (stacks.has(id) || first.current?.folded.has(id) === true)), [nodes, stacks, chosen]);
  const fold = useCallback(
    (ids: readonly string[], isFolded: boolean) =>
      setChosen((before) => {
        const folded = { ...before.folded, ...Object.fromEntries(ids.map((id) => [id, isFolded])) };
        writeStored(keyOf(before.team), JSON.stringify({ folded } satisfies Kept));
        return { ...before, folded };
      }),
    [],
  );
  return { tree, fold };
}

const keyOf = (team: string): string => `tree.${team}`;

function readKept(team: string): Kept {
  try {
    const kept = JSON.parse(readStored(keyOf(team)) ?? "{}") as Partial<Kept>;
    return { folded: kept.folded ?? {} };
  } catch {
    return { folded: {} };
  }
}
