/** replayData: the board and the events around one moment of a team's run. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap, type WorkNode } from "@/api/client";
import { displayStatusOf } from "@/parts/taskStatus";
import type { CardData } from "@/views/board/Card";
import type { FoldedTree } from "@/views/tree/folds";
import type { TreeLayout } from "@/views/tree/layout";
import type { Stack } from "@/views/tree/stacks";
import { append, emptyLog, type Event, type Row } from "@/live/log";

export type Moment = Schemas["BoardMomentView"];
/** Events are fetched in pieces of this size, which never change once they are full. */
export const CHUNK = 500;
/** A past moment never changes. */
const KEPT_MS = 5 * 60_000;

/** The board after an event; without a number, the board now. */
export const momentQuery = (team: string, seq: number | null) =>
  queryOptions({
    queryKey: ["board-at", team, seq ?? "now"],
    queryFn: () => unwrap(api.GET("/api/teams/{team}/board/at", { params: { path: { team }, query: seq === null ? {} : { seq } } })),
    placeholderData: keepPreviousData,
    staleTime: seq === null ? 0 : Infinity,
    gcTime: KEPT_MS,
  });

/** Return the moment with the work that the Board shows. Replies and reflections have no cards there, only conversations and threads. */
export const workOf = (moment: Moment): Moment => ({ ...moment, nodes: moment.nodes.filter((node) => node.lane === "work") });

/** The events with the numbers `CHUNK * n + 1` to `CHUNK * (n + 1)`. */
export const chunkQuery = (team: string, n: number, head: number) =>
  queryOptions({
    // The last chunk grows: its key names the newest event.
    queryKey: ["event-chunk", team, n, head >= CHUNK * (n + 1) ? "full" : head],
    queryFn: async () => (await unwrap(api.GET("/api/teams/{team}/events", { params: { path: { team }, query: { after: CHUNK * n, limit: CHUNK } } }))) as Event[],
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: KEPT_MS,
    enabled: n >= 0,
  });

/** Return the rows of an agent's conversation after the last of these events up to a moment. */
export function rowsAt(events: readonly Event[], seq: number, agent: string, coordinator: string): Row[] {
  const first = events[0];
  if (!first) return [];
  const until = events.filter((event) => event.seq <= seq);
  return append({ ...emptyLog(first.seq - 1), coordinator }, until).log.rowsByAgent[agent] ?? [];
}

/** Return the cards of the tasks that existed at a moment. */
export function cardsAt(moment: Moment, agents: readonly { id: string; name: string; role: string }[]): Map<string, CardData> {
  const members = new Map(agents.map((agent, order) => [agent.id, { ...agent, order }]));
  const done = new Set(moment.nodes.filter((node) => node.status === "completed").map((node) => node.id));
  const known = new Set(moment.nodes.map((node) => node.id));
  return new Map(
    moment.nodes.map((node) => {
      const assignee = members.get(node.assignee_id ?? "");
      const whole = { ...node, assignee: assignee?.name ?? null, team_id: "", task: "", sources: [] } as unknown as WorkNode;
      return [
        node.id,
        {
          node: whole,
          displayStatus: displayStatusOf(whole, false),
          openDependencies: node.depends_on.filter((id) => known.has(id) && !done.has(id)).length,
          order: assignee?.order ?? 0,
          isCoordinator: assignee?.role === "coordinator",
          isNew: false,
        },
      ];
    }),
  );
}

/** Leave out of a tree and its layout what did not exist at a moment. Cards keep their places while time moves. */
export function treeAt(tree: FoldedTree, layout: TreeLayout, stacks: ReadonlyMap<string, Stack>, exists: (id: string) => boolean) {
  const shownStacks = new Map([...stacks.values()].map((stack) => [stack.id, { ...stack, nodeIds: stack.nodeIds.filter(exists) }] as const).filter(([, stack]) => stack.nodeIds.length > 0));
  const isShown = (id: string): boolean => shownStacks.has(id) || exists(id);
  const shownOf = <T>(all: ReadonlyMap<string, T>): Map<string, T> => new Map([...all].filter(([id]) => isShown(id)));
  return {
    stacks: shownStacks,
    tree: { ...tree, places: new Map([...shownOf(tree.places)].map(([id, place]) => [id, { ...place, below: place.below.filter(exists) }])), shownBy: shownOf(tree.shownBy) },
    layout: {
      ...layout,
      frames: layout.frames.map((frame) => ({ ...frame, nodeIds: frame.nodeIds.filter(isShown) })).filter((frame) => frame.nodeIds.length > 0),
      lines: shownOf(layout.lines),
      positions: shownOf(layout.positions),
    },
  };
}
