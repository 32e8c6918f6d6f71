/**
 * Layout: the place of each task in the picture of the tree.
 *
 * A task stands above the tasks that it gave away. A first task has them beside each other, every other one has them
 * below itself and indented, as a tree of folders has. The tasks of a stage stand in a frame. Tasks keep the order and
 * the column in which they were first drawn, so that growing work moves only what is below or to the right of it.
 */
import { asTree } from "@/views/tree/tree";

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
export interface Point {
  x: number;
  y: number;
}
/** A line through these points, straight down or to a side from each to the next. */
export type Line = readonly Point[];

/** The tasks of one stage below one task. */
export interface Frame extends Point {
  stage: string;
  title: string;
  /** The stage's number, from 1; 0 if the stage is not known. */
  number: number;
  width: number;
  height: number;
  nodeIds: string[];
  /** The line to it. */
  line: Line;
}
/** The columns of tasks below each task, by stage. */
type Columns = ReadonlyMap<string, ReadonlyMap<string, readonly (readonly string[])[]>>;
export interface TreeLayout {
  /** In the order of the tree: a task comes before those below it. */
  positions: Map<string, Point>;
  frames: Frame[];
  /** The line to each task that is in no frame. */
  lines: Map<string, Line>;
  width: number;
  height: number;
  /** The next layout takes it as `previous`. */
  columns: Columns;
}

export const CARD = { width: 232, height: 92 };
const GAP = { x: 16, y: 20, group: 28, root: 56 };
/** Below a first task: the room for the line that leads to what stands beside each other there. */
const BUS = 36;
/** What is below a task is so much further to the right; the line to it is this far from the left edge of the task. */
const INDENT = 30;
const TRUNK = 16;
const FRAME = { top: 40, side: 14, bottom: 16 };
/** First tasks that gave nothing away stand side by side, so many in a row. */
const ROOTS_IN_A_ROW = 5;
/** The radius of the last turn of a line. */
export const CORNER = 6;
/** Tasks of no stage. */
const UNSTAGED = "";

interface Group {
  stage: string;
  columns: string[][];
  width: number;
  height: number;
  widths: number[];
}
interface Block {
  width: number;
  height: number;
  groups: Group[];
}

/** Return the number of rows after which a new column is begun, so that the picture is about as wide as a window. */
const rowsFor = (count: number): number => Math.max(1, Math.round(Math.sqrt(1.4 * count)));

/** Return the places of all nodes. `previous` is the `columns` of the previous layout of the same tree. */
export function layoutTree(nodes: readonly LayoutNode[], stages: readonly LayoutStage[], previous: Columns = new Map()): TreeLayout {
  const tree = asTree(sortById(nodes));
  const numbers = new Map(stages.map((stage, index) => [stage.id, index + 1]));
  const names = new Map(stages.map((stage) => [stage.id, stage.name]));
  const children = new Map<string, LayoutNode[]>();
  for (const { part, depth } of tree) {
    if (depth === 0) continue;
    const siblings = children.get(part.parent_id!);
    if (siblings) siblings.push(part);
    else children.set(part.parent_id!, [part]);
  }
  const columns = new Map(previous);
  const fullColumn = rowsFor(nodes.length) * (CARD.height + GAP.y) - GAP.y;

  // From below: the size of each task with all that is below it.
  const blocks = new Map<string, Block>();
  const heightOf = (ids: readonly string[]): number => ids.reduce((sum, id) => sum + blocks.get(id)!.height + GAP.y, -GAP.y);
  for (const { part, depth } of tree.toReversed()) blocks.set(part.id, blockOf(part.id, depth));

  function blockOf(id: string, depth: number): Block {
    const below = children.get(id);
    if (!below) return { ...CARD, groups: [] };
    const groups = groupsOf(id, below);
    columns.set(id, new Map(groups.map((group) => [group.stage, group.columns])));
    const widths = groups.map((group) => indentOf(group, depth) + group.width);
    const heights = groups.map((group) => group.height);
    if (depth === 0) return { groups, width: Math.max(CARD.width, sum(widths) + (groups.length - 1) * GAP.group), height: CARD.height + BUS + Math.max(...heights) };
    return { groups, width: Math.max(CARD.width, ...widths), height: CARD.height + sum(heights) + groups.length * GAP.y };
  }

  /** Return what is below a task by stage: the known stages as before, then tasks of none, then new stages by their number. */
  function groupsOf(id: string, below: LayoutNode[]): Group[] {
    const known = previous.get(id);
    const members = new Map<string, string[]>([...(known?.keys() ?? []), UNSTAGED, ...numbers.keys()].map((stage) => [stage, []]));
    for (const node of below) {
      const stage = node.stage_id ?? UNSTAGED;
      if (!members.has(stage)) members.set(stage, []);
      members.get(stage)!.push(node.id);
    }
    return [...members].filter(([, ids]) => ids.length > 0).map(([stage, ids]) => groupOf(stage, columnsOf(ids, known?.get(stage) ?? [])));
  }

  /** Return the ids in columns: known ones where they were, new ones below the last one until its column is full. */
  function columnsOf(ids: string[], known: readonly (readonly string[])[]): string[][] {
    const added = new Set(ids);
    const found = known.map((column) => column.filter((id) => added.delete(id))).filter((column) => column.length > 0);
    let height = heightOf(found.at(-1) ?? []);
    for (const id of added) {
      height += GAP.y + blocks.get(id)!.height;
      if (found.length > 0 && height <= fullColumn) found.at(-1)!.push(id);
      else {
        found.push([id]);
        height = blocks.get(id)!.height;
      }
    }
    return found;
  }

  function groupOf(stage: string, found: string[][]): Group {
    const isFramed = stage !== UNSTAGED;
    const widths = found.map((column) => Math.max(...column.map((id) => blocks.get(id)!.width)));
    const height = Math.max(...found.map(heightOf));
    const inside = sum(widths) + (found.length - 1) * (isFramed ? GAP.x : INDENT);
    // A frame holds its tasks without lines to each of them.
    return { stage, columns: found, widths, width: inside + (isFramed ? 2 * FRAME.side : 0), height: height + (isFramed ? FRAME.top + FRAME.bottom : 0) };
  }

  // From above: the place of each task.
  const positions = new Map<string, Point>();
  const frames: Frame[] = [];
  const lines = new Map<string, Line>();
  const size = { width: 0, height: 0 };
  const placed = new Map<string, Point>(rootPlaces());
  const open = [...placed.keys()].reverse();
  const roots = new Set(open);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const at = placed.get(id)!;
    const depth = roots.has(id) ? 0 : 1;
    positions.set(id, at);
    let { x, y } = { x: at.x, y: at.y + CARD.height + (depth === 0 ? BUS : GAP.y) };
    const { groups } = blocks.get(id)!;
    for (const group of groups) {
      placeGroup(group, at, { x: x + indentOf(group, depth), y }, depth);
      if (depth === 0) x += indentOf(group, depth) + group.width + GAP.group;
      else y += group.height + GAP.y;
    }
    open.push(...groups.flatMap((group) => group.columns.flat()).reverse());
  }

  function* rootPlaces(): Generator<[string, Point]> {
    let y = 0;
    let inRow = 0;
    for (const { part, depth } of tree) {
      if (depth > 0) continue;
      const { width, height, groups } = blocks.get(part.id)!;
      const isAlone = groups.length === 0;
      if (inRow > 0 && (!isAlone || inRow === ROOTS_IN_A_ROW)) {
        y += CARD.height + (isAlone ? GAP.y : GAP.root);
        inRow = 0;
      }
      const x = inRow * (CARD.width + GAP.group);
      yield [part.id, { x, y }];
      size.width = Math.max(size.width, x + width);
      size.height = Math.max(size.height, y + height);
      if (isAlone) inRow += 1;
      else y += height + GAP.root;
    }
  }

  function placeGroup(group: Group, above: Point, { x, y }: Point, depth: number): void {
    const isFramed = group.stage !== UNSTAGED;
    const from = { x: above.x + TRUNK, y: above.y + CARD.height };
    const bus = y - (depth === 0 ? BUS : GAP.y) / 2;
    if (isFramed) {
      const { stage, width, height } = group;
      const line = depth === 0 ? [from, { x: from.x, y: bus }, { x: x + TRUNK, y: bus }, { x: x + TRUNK, y }] : elbow(from, bus, from.x, { x, y: y + FRAME.top / 2 });
      frames.push({ stage, title: names.get(stage) ?? "Stage", number: numbers.get(stage) ?? 0, x, y, width, height, nodeIds: group.columns.flat(), line });
    }
    let columnX = x + (isFramed ? FRAME.side : 0);
    group.columns.forEach((column, index) => {
      let rowY = y + (isFramed ? FRAME.top : 0);
      let last: number | null = null;
      for (const id of column) {
        placed.set(id, { x: columnX, y: rowY });
        const to = { x: columnX, y: rowY + CARD.height / 2 };
        const trunk = columnX - INDENT + TRUNK;
        // Each line goes on where the one above it turns: lines over each other cost a browser much time to draw.
        if (!isFramed) lines.set(id, last === null ? elbow(from, bus, trunk, to) : elbow({ x: trunk, y: last }, bus, trunk, to));
        last = to.y - CORNER;
        rowY += blocks.get(id)!.height + GAP.y;
      }
      columnX += group.widths[index]! + (isFramed ? GAP.x : INDENT);
    });
  }

  return { positions, frames, lines, ...size, columns };
}

/** Return how far to the right of its task a group stands. The line to a frame below a first task comes from above, and needs no room beside it. */
const indentOf = (group: Group, depth: number): number => (depth === 0 && group.stage !== UNSTAGED ? 0 : INDENT);

/** Return a line that goes down to the bus, along it, down again, and to the right. */
function elbow(from: Point, bus: number, x: number, to: Point): Line {
  const along = x === from.x ? [] : [{ x: from.x, y: bus }, { x, y: bus }];
  return [from, ...along, { x, y: to.y }, to];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Return the nodes by creation time: ids sort by time. */
function sortById(nodes: readonly LayoutNode[]): LayoutNode[] {
  return [...nodes].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** Return by how much to move something that starts at `at`, so that it lies between two edges. What is too large starts at the first edge, so that a second call moves nothing. */
export function shiftIntoView(at: number, size: number, first: number, last: number): number {
  if (at < first || size > last - first) return first - at;
  return Math.min(0, last - size - at);
}
