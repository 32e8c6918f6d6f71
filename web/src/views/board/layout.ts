/**
 * Layout: where each task stands on the board.
 *
 * A lane for each stage, one for goals, and lanes for tasks outside any stage, always to the right of what
 * they need. Lanes come in the order they were opened and a card never changes its place in its lane: what is
 * new is put at the end. So the board grows and what somebody looks at stays where it is.
 */
export interface Piece {
  id: string;
  parent_id: string | null;
  depends_on: readonly string[];
  stage_id: string | null;
}
export interface Step {
  id: string;
  name: string;
}

export interface Lane {
  id: string;
  title: string;
  kind: "goals" | "stage" | "tasks";
  /** Which stage it is, from 1; 0 for others. */
  number: number;
  x: number;
  width: number;
  height: number;
  pieces: string[];
}
export interface Edge {
  id: string;
  source: string;
  target: string;
  kind: "needs" | "spawned";
}
export interface Layout {
  lanes: Lane[];
  at: Map<string, { x: number; y: number }>;
  edges: Edge[];
  /** What the next layout keeps: the order in each lane. */
  order: Map<string, string[]>;
}

export const CARD = { width: 232, height: 110 };
export const GAP = { x: 20, y: 16, lane: 88 };
export const PAD = { top: 54, side: 18, bottom: 22 };
/** Cards above each other before a lane gets another column; twice as many where there are very many. */
export const ROWS = 12;
const VERY_MANY = 3 * ROWS;

const GOALS = "goals";

export function layout(pieces: readonly Piece[], steps: readonly Step[], before?: ReadonlyMap<string, readonly string[]>): Layout {
  const known = new Map(pieces.map((piece) => [piece.id, piece]));
  const needs = (piece: Piece): string[] => piece.depends_on.filter((id) => known.has(id));
  const names = new Map(steps.map((step, index) => [step.id, { name: step.name, number: index + 1 }]));

  // 1. Which lane, in the order things were made; lanes are only ever added at the end.
  const laneOf = new Map<string, string>();
  const column = new Map<string, number>();
  const members = new Map<string, Piece[]>();
  const open = (lane: string): void => {
    if (!column.has(lane)) {
      column.set(lane, column.size);
      members.set(lane, []);
    }
  };
  for (const lane of before?.keys() ?? []) open(lane);
  for (const piece of sorted(pieces)) {
    const lane = choose(piece);
    open(lane);
    laneOf.set(piece.id, lane);
    members.get(lane)!.push(piece);
  }

  function choose(piece: Piece): string {
    if (piece.stage_id) return piece.stage_id;
    const parent = piece.parent_id ? known.get(piece.parent_id) : undefined;
    const needed = Math.max(-1, ...needs(piece).map((id) => column.get(laneOf.get(id) ?? "") ?? -1));
    if (!parent) return needed < 0 ? GOALS : tasksAfter(needed);
    const above = laneOf.get(parent.id);
    if (above === undefined) return GOALS;
    if (above !== GOALS) {
      // What a worker split off stands with the work it came from, unless it has to wait for something further on.
      return needed <= column.get(above)! ? above : tasksAfter(needed);
    }
    return tasksAfter(Math.max(needed, column.get(GOALS)!));
  }

  function tasksAfter(place: number): string {
    for (const [lane, at] of column) if (at > place && lane.startsWith("tasks:")) return lane;
    return `tasks:${column.size}`;
  }

  // 2. The order in each lane: what was there stays; what is new goes below, near what it needs.
  const order = new Map<string, string[]>();
  const rowOf = new Map<string, number>();
  for (const lane of column.keys()) {
    const here = members.get(lane)!;
    const ids = new Set(here.map((piece) => piece.id));
    const kept = (before?.get(lane) ?? []).filter((id) => ids.has(id));
    const old = new Set(kept);
    const fresh = arrange(here.filter((piece) => !old.has(piece.id)), rowOf, needs);
    const all = [...kept, ...fresh];
    order.set(lane, all);
    all.forEach((id, row) => rowOf.set(id, row));
  }

  // 3. Places.
  const at = new Map<string, { x: number; y: number }>();
  const lanes: Lane[] = [];
  let x = 0;
  for (const [lane, ids] of order) {
    if (ids.length === 0) continue;
    const columns = columnsOf(lane, ids);
    columns.forEach((stack, col) =>
      stack.forEach((id, row) =>
        at.set(id, { x: x + PAD.side + col * (CARD.width + GAP.x), y: PAD.top + row * (CARD.height + GAP.y) }),
      ),
    );
    const rows = Math.max(...columns.map((stack) => stack.length));
    const width = 2 * PAD.side + columns.length * CARD.width + (columns.length - 1) * GAP.x;
    const named = names.get(lane);
    lanes.push({
      id: lane,
      kind: lane === GOALS ? "goals" : named || !lane.startsWith("tasks:") ? "stage" : "tasks",
      title: lane === GOALS ? "Goals" : (named?.name ?? (lane.startsWith("tasks:") ? (lanes.some((other) => other.kind === "tasks") ? "Then" : "Tasks") : "Stage")),
      number: named?.number ?? 0,
      x,
      width,
      height: PAD.top + rows * (CARD.height + GAP.y) - GAP.y + PAD.bottom,
      pieces: ids,
    });
    x += width + GAP.lane;
  }

  /** Within a stage, what needs something of the same stage stands to the right of it; long stacks are broken. */
  function columnsOf(lane: string, ids: string[]): string[][] {
    const depth = new Map<string, number>();
    const depthOf = (id: string, trail: Set<string>): number => {
      const found = depth.get(id);
      if (found !== undefined) return found;
      if (trail.has(id)) return 0;
      trail.add(id);
      const inside = needs(known.get(id)!).filter((other) => laneOf.get(other) === lane);
      const deep = inside.length === 0 ? 0 : 1 + Math.max(...inside.map((other) => depthOf(other, trail)));
      trail.delete(id);
      depth.set(id, deep);
      return deep;
    };
    const byDepth: string[][] = [];
    for (const id of ids) (byDepth[depthOf(id, new Set())] ??= []).push(id);
    return byDepth.filter(Boolean).flatMap((stack) => {
      const parts: string[][] = [];
      const rows = ids.length > VERY_MANY ? 2 * ROWS : ROWS;
      for (let from = 0; from < stack.length; from += rows) parts.push(stack.slice(from, from + rows));
      return parts;
    });
  }

  const edges: Edge[] = [];
  for (const piece of pieces) {
    for (const id of needs(piece)) edges.push({ id: `${id}>${piece.id}`, source: id, target: piece.id, kind: "needs" });
    const parent = piece.parent_id;
    // That tasks and stages come from a goal is what their lanes say; lines for it would only hide the others.
    if (parent && known.has(parent) && laneOf.get(parent) !== GOALS) {
      edges.push({ id: `${parent}:${piece.id}`, source: parent, target: piece.id, kind: "spawned" });
    }
  }
  return { lanes, at, edges, order };
}

/** In the order they were made, but never before a parent or something needed. Ids sort by time. */
function sorted(pieces: readonly Piece[]): Piece[] {
  return [...pieces].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** By the mean place of what each needs; children follow their parent. */
function arrange(fresh: Piece[], rowOf: ReadonlyMap<string, number>, needs: (piece: Piece) => string[]): string[] {
  const here = new Set(fresh.map((piece) => piece.id));
  const weight = new Map<string, number>();
  fresh.forEach((piece, index) => {
    const rows = needs(piece).map((id) => rowOf.get(id)).filter((row) => row !== undefined);
    weight.set(piece.id, rows.length > 0 ? rows.reduce((sum, row) => sum + row, 0) / rows.length : index);
  });
  const children = new Map<string | null, Piece[]>();
  for (const piece of fresh) {
    const above = piece.parent_id && here.has(piece.parent_id) ? piece.parent_id : null;
    children.set(above, [...(children.get(above) ?? []), piece]);
  }
  const found: string[] = [];
  const seen = new Set<string>();
  const put = (above: string | null): void => {
    const group = (children.get(above) ?? []).slice().sort((a, b) => weight.get(a.id)! - weight.get(b.id)!);
    for (const piece of group) {
      if (seen.has(piece.id)) continue;
      seen.add(piece.id);
      found.push(piece.id);
      put(piece.id);
    }
  };
  put(null);
  for (const piece of fresh) if (!seen.has(piece.id)) found.push(piece.id);
  return found;
}
