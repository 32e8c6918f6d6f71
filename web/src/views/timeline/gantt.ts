/** Gantt: the lanes, bars and cost curve of a timeline, computed from its spans. No drawing. */
import { endOf, type Phase, type Span, startOf, type Tick } from "@/views/timeline/phases";

export interface Piece {
  span: Span;
  from: number;
  to: number;
}
/** One run of work on a task: its pieces follow each other without a gap. */
export interface Bar {
  nodeId: string;
  agentId: string;
  /** The row inside the agent's lane: bars that overlap in time stand in different rows. */
  row: number;
  from: number;
  to: number;
  /** When the next bar of its row begins; infinite for the last one. Its title may be written up to there. */
  nextFrom: number;
  pieces: Piece[];
}
export interface Lane {
  agentId: string;
  /** The first row of the lane among all rows. */
  firstRow: number;
  rows: number;
  bars: Bar[];
  ticks: { tick: Tick; at: number }[];
}
export interface Chart {
  lanes: Lane[];
  rows: number;
  from: number;
  to: number;
  /** The cost of all model calls up to a time, at each time where it grows. */
  costs: { at: number; usd: number }[];
  /** The time spent in each phase, in milliseconds. */
  totals: Map<Phase, number>;
  /** When all work of all teams was stopped. */
  stops: { from: number; to: number }[];
}

/** Cut each task's spans into bars: a retry hours later is a bar of its own. The queue before the first start is no work and no bar. */
function barsOf(spans: readonly Span[], now: number): Bar[] {
  const byNode = new Map<string, Span[]>();
  for (const span of spans) {
    const key = `${span.agent_id}\n${span.node_id}`;
    const own = byNode.get(key);
    if (own) own.push(span);
    else byNode.set(key, [span]);
  }
  const bars: Bar[] = [];
  for (const own of byNode.values()) {
    own.sort((a, b) => a.number - b.number);
    let bar: Bar | null = null;
    for (const span of own) {
      const from = startOf(span);
      const to = endOf(span, now);
      if (bar && from > bar.to) bar = null;
      if (!bar) {
        if (span.phase === "queued") continue;
        bar = { nodeId: span.node_id, agentId: span.agent_id, row: 0, from, to, nextFrom: Infinity, pieces: [] };
        bars.push(bar);
      }
      bar.pieces.push({ span, from, to });
      bar.to = Math.max(bar.to, to);
    }
  }
  return bars.sort((a, b) => a.from - b.from || (a.nodeId < b.nodeId ? -1 : 1));
}

/** Put each bar into the first row that is free by then; return the number of rows. */
function packRows(bars: Bar[]): number {
  const freeAt: number[] = [];
  const last: Bar[] = [];
  for (const bar of bars) {
    let row = freeAt.findIndex((at) => at <= bar.from);
    if (row < 0) row = freeAt.length;
    freeAt[row] = bar.to;
    bar.row = row;
    const before = last[row];
    if (before) before.nextFrom = bar.from;
    last[row] = bar;
  }
  return Math.max(1, freeAt.length);
}

/** Return the chart. `agents` are the ids in the order of their lanes; others follow. */
export function layoutChart(spans: readonly Span[], ticks: readonly Tick[], agents: readonly string[], now: number, stopped: readonly { start: string; end: string | null }[] = []): Chart {
  const order = new Map(agents.map((id, index) => [id, index]));
  const barsByAgent = new Map<string, Bar[]>();
  for (const bar of barsOf(spans, now)) {
    const own = barsByAgent.get(bar.agentId);
    if (own) own.push(bar);
    else barsByAgent.set(bar.agentId, [bar]);
  }
  const ticksByAgent = new Map<string, Lane["ticks"]>();
  for (const tick of ticks) {
    const own = ticksByAgent.get(tick.agent_id);
    const placed = { tick, at: Date.parse(tick.at) };
    if (own) own.push(placed);
    else ticksByAgent.set(tick.agent_id, [placed]);
  }
  const ids = [...barsByAgent.keys()].sort((a, b) => (order.get(a) ?? Infinity) - (order.get(b) ?? Infinity) || (a < b ? -1 : 1));
  const lanes: Lane[] = [];
  let rows = 0;
  for (const agentId of ids) {
    const bars = barsByAgent.get(agentId)!;
    const count = packRows(bars);
    lanes.push({ agentId, firstRow: rows, rows: count, bars, ticks: ticksByAgent.get(agentId) ?? [] });
    rows += count;
  }
  const from = Math.min(...lanes.map((lane) => lane.bars[0]!.from));
  const to = Math.max(...lanes.flatMap((lane) => lane.bars.map((bar) => bar.to)));
  const stops = stopped.map(({ start, end }) => ({ from: Date.parse(start), to: end === null ? Math.max(now, Date.parse(start)) : Date.parse(end) }));
  return { lanes, rows, from: lanes.length > 0 ? from : now, to: lanes.length > 0 ? Math.max(to, from + 1000) : now + 1000, costs: costCurve(spans), totals: totalsOf(spans, now), stops };
}

function costCurve(spans: readonly Span[]): Chart["costs"] {
  let usd = 0;
  return spans
    .filter((span) => span.usd && span.end)
    .map((span) => ({ at: Date.parse(span.end!), cost: span.usd! }))
    .sort((a, b) => a.at - b.at)
    .map(({ at, cost }) => ({ at, usd: (usd += cost) }));
}

function totalsOf(spans: readonly Span[], now: number): Map<Phase, number> {
  const found = new Map<Phase, number>();
  for (const span of spans) found.set(span.phase, (found.get(span.phase) ?? 0) + endOf(span, now) - startOf(span));
  return found;
}

/** Return what all model calls had cost up to a time. */
export function costAt(chart: Chart, at: number): number {
  let low = 0;
  let high = chart.costs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chart.costs[middle]!.at <= at) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : chart.costs[low - 1]!.usd;
}

/** Return the number of the last known event up to a time, from which the replay can show the moment. */
export function eventAt(spans: readonly Span[], ticks: readonly Tick[], at: number): number {
  let seq = 1;
  for (const span of spans) if (span.end !== null && span.seq > seq && Date.parse(span.end) <= at) seq = span.seq;
  for (const tick of ticks) if (tick.seq > seq && Date.parse(tick.at) <= at) seq = tick.seq;
  return seq;
}

/** Return the piece in a row at a time, or the nearest one within `slack` milliseconds. */
export function pieceAt(chart: Chart, row: number, at: number, slack: number): { bar: Bar; piece: Piece } | null {
  const lane = chart.lanes.find((one) => row >= one.firstRow && row < one.firstRow + one.rows);
  if (!lane) return null;
  let best: { bar: Bar; piece: Piece } | null = null;
  let bestGap = slack;
  for (const bar of lane.bars) {
    if (bar.row !== row - lane.firstRow || bar.from - slack > at || bar.to + slack < at) continue;
    for (const piece of bar.pieces) {
      const gap = at < piece.from ? piece.from - at : at > piece.to ? at - piece.to : 0;
      if (gap <= bestGap) [best, bestGap] = [{ bar, piece }, gap];
    }
  }
  return best;
}

/** Return where a bar is drawn, in pixels: a short one is widened to `least`, inside the picture. Null: it is outside. */
export function barExtent(left: number, right: number, frame: { left: number; right: number }, least: number): { x: number; width: number } | null {
  const isOutside = right < frame.left || left > frame.right;
  if (isOutside) return null;
  if (right - left >= least) return { x: Math.max(left, frame.left), width: Math.min(right, frame.right) - Math.max(left, frame.left) };
  return { x: Math.min(Math.max(left, frame.left), frame.right - least), width: least };
}

/** Return where a bar's title begins and how wide it may be: up to the next bar of its row, and as a whole inside the picture if the row has room to the left. Null: there is no room for it. */
export function titleExtent(bar: { x: number; next: number }, textWidth: number, frame: { right: number }, before: number, least: number): { x: number; width: number } | null {
  const end = Math.min(bar.next, frame.right);
  const needed = Math.min(textWidth, end - before);
  const x = Math.max(before, Math.min(bar.x, end - needed));
  // Only the last title of a row is moved to the left: others would seem to belong to the bar before.
  const start = bar.next >= frame.right ? x : Math.max(bar.x, before);
  return end - start >= Math.min(least, textWidth) ? { x: start, width: end - start } : null;
}

export interface Place {
  lane: number;
  bar: number;
  piece: number;
}

/** Return the place that an arrow key leads to: left and right along the pieces of a lane, up and down to another lane at the same time. */
export function step(chart: Chart, at: Place | null, key: string): Place | null {
  if (chart.lanes.length === 0) return null;
  if (!at) return { lane: 0, bar: 0, piece: 0 };
  const lane = chart.lanes[at.lane];
  const bar = lane?.bars[at.bar];
  if (!lane || !bar) return { lane: 0, bar: 0, piece: 0 };
  switch (key) {
    case "ArrowRight":
      if (at.piece + 1 < bar.pieces.length) return { ...at, piece: at.piece + 1 };
      return at.bar + 1 < lane.bars.length ? { lane: at.lane, bar: at.bar + 1, piece: 0 } : at;
    case "ArrowLeft":
      if (at.piece > 0) return { ...at, piece: at.piece - 1 };
      return at.bar > 0 ? { lane: at.lane, bar: at.bar - 1, piece: lane.bars[at.bar - 1]!.pieces.length - 1 } : at;
    case "Home":
      return { lane: at.lane, bar: 0, piece: 0 };
    case "End":
      return { lane: at.lane, bar: lane.bars.length - 1, piece: lane.bars.at(-1)!.pieces.length - 1 };
    default: {
      const next = at.lane + (key === "ArrowDown" ? 1 : -1);
      const other = chart.lanes[next];
      if (!other) return at;
      const moment = bar.pieces[at.piece]?.from ?? bar.from;
      let nearest = 0;
      other.bars.forEach((one, index) => {
        if (one.from <= moment) nearest = index;
      });
      const piece = other.bars[nearest]!.pieces.findLastIndex((one) => one.from <= moment);
      return { lane: next, bar: nearest, piece: Math.max(0, piece) };
    }
  }
}

const STEPS_MS = [1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000];

/** Return the times of the axis' marks: round times of the reader's day, at most `most` of them. */
export function axisMarks(from: number, to: number, most: number): { marks: number[]; stepMs: number } {
  const stepMs = STEPS_MS.find((one) => (to - from) / one <= most) ?? Math.ceil((to - from) / most / 604_800_000) * 604_800_000;
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const marks: number[] = [];
  for (let at = Math.ceil((from - zone) / stepMs) * stepMs + zone; at <= to; at += stepMs) marks.push(at);
  return { marks, stepMs };
}
