/**
 * Layout: the position of each task on the board.
 *
 * Each stage has a lane, the goals have one, and tasks outside any stage stand in task lanes to the right of
 * their dependencies. Lanes keep the order in which they were created, and a card keeps its place in its lane:
 * new cards are added at the end. So the board grows without moving the cards that a person looks at.
 */
export interface LayoutNode {
  id: string;
  parent_id: string | null;
  depends_on: readonly string[];
  stage_id: string | null;
}
interface LayoutStage {
  id: string;
  name: string;
}

export interface Lane {
  id: string;
  title: string;
  kind: "goals" | "stage" | "tasks";
  /** The stage's number, from 1; 0 for a lane that is not a stage. */
  number: number;
  x: number;
  width: number;
  height: number;
  nodeIds: string[];
}
export interface Edge {
  id: string;
  source: string;
  target: string;
  kind: "needs" | "spawned";
}
export interface BoardLayout {
  lanes: Lane[];
  positions: Map<string, { x: number; y: number }>;
  edges: Edge[];
  /** The node ids of each lane in order. The next layout takes it as `previousOrder`. */
  order: Map<string, string[]>;
}

export const CARD = { width: 232, height: 110 };
export const GAP = { x: 20, y: 16, lane: 88 };
const PAD = { top: 54, side: 18, bottom: 22 };
/** The number of cards in a column of a lane. A lane with more than `LONG_LANE` cards has columns of twice this length. */
export const ROWS_PER_COLUMN = 12;
const LONG_LANE = 3 * ROWS_PER_COLUMN;

const GOALS = "goals";

/** Return the positions of all nodes. `previousOrder` is the `order` of the previous layout of the same board. */
export function layoutBoard(nodes: readonly LayoutNode[], stages: readonly LayoutStage[], previousOrder?: ReadonlyMap<string, readonly string[]>): BoardLayout {
  const nodeById = new Map(nodes.map((node) => [node.id, node]));
  const needs = (node: LayoutNode): string[] => node.depends_on.filter((id) => nodeById.has(id));
  const stageById = new Map(stages.map((stage, index) => [stage.id, { name: stage.name, number: index + 1 }]));

  // 1. Assign each node to a lane, oldest node first. New lanes are added at the end.
  const laneOf = new Map<string, string>();
  const laneIndex = new Map<string, number>();
  const members = new Map<string, LayoutNode[]>();
  const open = (lane: string): void => {
    if (!laneIndex.has(lane)) {
      laneIndex.set(lane, laneIndex.size);
      members.set(lane, []);
    }
  };
  for (const lane of previousOrder?.keys() ?? []) open(lane);
  for (const node of sortById(nodes)) {
    const lane = chooseLane(node);
    open(lane);
    laneOf.set(node.id, lane);
    members.get(lane)!.push(node);
  }

  function chooseLane(node: LayoutNode): string {
    if (node.stage_id) return node.stage_id;
    const parent = node.parent_id ? nodeById.get(node.parent_id) : undefined;
    const rightmostNeed = Math.max(-1, ...needs(node).map((id) => laneIndex.get(laneOf.get(id) ?? "") ?? -1));
    if (!parent) return rightmostNeed < 0 ? GOALS : taskLaneAfter(rightmostNeed);
    const parentLane = laneOf.get(parent.id);
    if (parentLane === undefined) return GOALS;
    if (parentLane !== GOALS) {
      // A subtask stands in its parent's lane, unless it depends on a node in a lane further right.
      return rightmostNeed <= laneIndex.get(parentLane)! ? parentLane : taskLaneAfter(rightmostNeed);
    }
    return taskLaneAfter(Math.max(rightmostNeed, laneIndex.get(GOALS)!));
  }

  function taskLaneAfter(index: number): string {
    for (const [lane, at] of laneIndex) if (at > index && lane.startsWith("tasks:")) return lane;
    return `tasks:${laneIndex.size}`;
  }

  // 2. Order the nodes of each lane: known nodes keep their place, new ones follow, near their dependencies.
  const order = new Map<string, string[]>();
  const rowOf = new Map<string, number>();
  for (const lane of laneIndex.keys()) {
    const laneNodes = members.get(lane)!;
    const ids = new Set(laneNodes.map((node) => node.id));
    const kept = (previousOrder?.get(lane) ?? []).filter((id) => ids.has(id));
    const keptIds = new Set(kept);
    const added = orderNewNodes(laneNodes.filter((node) => !keptIds.has(node.id)), rowOf, needs);
    const all = [...kept, ...added];
    order.set(lane, all);
    all.forEach((id, row) => rowOf.set(id, row));
  }

  // 3. Compute the positions.
  const positions = new Map<string, { x: number; y: number }>();
  const lanes: Lane[] = [];
  let x = 0;
  for (const [lane, ids] of order) {
    if (ids.length === 0) continue;
    const columns = columnsOf(lane, ids);
    columns.forEach((stack, col) =>
      stack.forEach((id, row) =>
        positions.set(id, { x: x + PAD.side + col * (CARD.width + GAP.x), y: PAD.top + row * (CARD.height + GAP.y) }),
      ),
    );
    const rows = Math.max(...columns.map((stack) => stack.length));
    const width = 2 * PAD.side + columns.length * CARD.width + (columns.length - 1) * GAP.x;
    const stage = stageById.get(lane);
    lanes.push({
      id: lane,
      kind: lane === GOALS ? "goals" : stage || !lane.startsWith("tasks:") ? "stage" : "tasks",
      title: lane === GOALS ? "Goals" : (stage?.name ?? (lane.startsWith("tasks:") ? (lanes.some((other) => other.kind === "tasks") ? "Next tasks" : "Tasks") : "Stage")),
      number: stage?.number ?? 0,
      x,
      width,
      height: PAD.top + rows * (CARD.height + GAP.y) - GAP.y + PAD.bottom,
      nodeIds: ids,
    });
    x += width + GAP.lane;
  }

  /** Split a lane into columns: a node stands to the right of its dependencies in the same lane, and long columns are broken. */
  function columnsOf(lane: string, ids: string[]): string[][] {
    const depth = new Map<string, number>();
    const depthOf = (id: string, path: Set<string>): number => {
      const knownDepth = depth.get(id);
      if (knownDepth !== undefined) return knownDepth;
      // Stop at a node that is already on the path: a cycle in the data must not hang the page.
      if (path.has(id)) return 0;
      path.add(id);
      const laneNeeds = needs(nodeById.get(id)!).filter((other) => laneOf.get(other) === lane);
      const nodeDepth = laneNeeds.length === 0 ? 0 : 1 + Math.max(...laneNeeds.map((other) => depthOf(other, path)));
      path.delete(id);
      depth.set(id, nodeDepth);
      return nodeDepth;
    };
    const byDepth: string[][] = [];
    for (const id of ids) (byDepth[depthOf(id, new Set())] ??= []).push(id);
    return byDepth.filter(Boolean).flatMap((stack) => {
      const parts: string[][] = [];
      const rows = ids.length > LONG_LANE ? 2 * ROWS_PER_COLUMN : ROWS_PER_COLUMN;
      for (let from = 0; from < stack.length; from += rows) parts.push(stack.slice(from, from + rows));
      return parts;
    });
  }

  const edges: Edge[] = [];
  for (const node of nodes) {
    for (const id of needs(node)) edges.push({ id: `${id}>${node.id}`, source: id, target: node.id, kind: "needs" });
    const parent = node.parent_id;
    // No edges from goals: every task comes from a goal, and those edges would hide the dependencies.
    if (parent && nodeById.has(parent) && laneOf.get(parent) !== GOALS) {
      edges.push({ id: `${parent}:${node.id}`, source: parent, target: node.id, kind: "spawned" });
    }
  }
  return { lanes, positions, edges, order };
}

/** Return the nodes by creation time. Ids sort by time, so a node comes after its parent and its dependencies. */
function sortById(nodes: readonly LayoutNode[]): LayoutNode[] {
  return [...nodes].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** Return the ids of new nodes by the mean row of their dependencies. Children follow their parent. */
function orderNewNodes(newNodes: LayoutNode[], rowOf: ReadonlyMap<string, number>, needs: (node: LayoutNode) => string[]): string[] {
  const newIds = new Set(newNodes.map((node) => node.id));
  const weight = new Map<string, number>();
  newNodes.forEach((node, index) => {
    const rows = needs(node).map((id) => rowOf.get(id)).filter((row) => row !== undefined);
    weight.set(node.id, rows.length > 0 ? rows.reduce((sum, row) => sum + row, 0) / rows.length : index);
  });
  const children = new Map<string | null, LayoutNode[]>();
  for (const node of newNodes) {
    const parent = node.parent_id && newIds.has(node.parent_id) ? node.parent_id : null;
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const ordered: string[] = [];
  const seen = new Set<string>();
  const visit = (parent: string | null): void => {
    const group = (children.get(parent) ?? []).slice().sort((a, b) => weight.get(a.id)! - weight.get(b.id)!);
    for (const node of group) {
      if (seen.has(node.id)) continue;
      seen.add(node.id);
      ordered.push(node.id);
      visit(node.id);
    }
  };
  visit(null);
  for (const node of newNodes) if (!seen.has(node.id)) ordered.push(node.id);
  return ordered;
}

/** Return by how much to move something that starts at `at`, so that it lies between two edges. What is too large starts at the first edge, so that a second call moves nothing. */
export function shiftIntoView(at: number, size: number, first: number, last: number): number {
  if (at < first || size > last - first) return first - at;
  return Math.min(0, last - size - at);
}
