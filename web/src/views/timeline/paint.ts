/** Paint: draws the visible part of a chart on a canvas. */
import { clockTime, clockTimeWithSeconds, dayKey, money } from "@/lib/format";
import { axisMarks, type Bar, barExtent, type Chart, type Piece, titleExtent } from "@/views/timeline/gantt";
import { PHASES, type Phase } from "@/views/timeline/phases";

/** A row holds a line of text and, below it, a bar. */
export const ROW = 34;
const LANE_GAP = 16;
export const AXIS = 28;
export const COST = 44;
const TITLE = 15;
const BAR = 13;
/** A narrower piece is drawn with this width: it must be seen. Seconds of work among days of waiting get more. */
const MIN_PIECE = 1;
const MIN_WORK = 3;
/** A shorter bar is drawn with this width, so that a second of work is seen among days of waiting. */
const MIN_BAR = 6;
/** A title is shown if there is so much room for it, or all that it needs. */
const MIN_TITLE = 46;
const TITLE_GAP = 8;

export interface View {
  width: number;
  height: number;
  /** The width of the column with the names. */
  gutter: number;
  from: number;
  to: number;
  scrollTop: number;
}
export interface Names {
  agent: (id: string) => string;
  node: (id: string) => string;
}
export type Palette = (token: string) => string;

const xOf = (view: View, at: number): number => view.gutter + ((at - view.from) / (view.to - view.from)) * (view.width - view.gutter);
export const timeAt = (view: View, x: number): number => view.from + ((x - view.gutter) / Math.max(1, view.width - view.gutter)) * (view.to - view.from);
/** Return the top of a row in the whole chart, without scrolling. */
export const topOfRow = (chart: Chart, row: number): number => {
  const lane = chart.lanes.findIndex((one) => row < one.firstRow + one.rows);
  return AXIS + row * ROW + (lane < 0 ? chart.lanes.length : lane) * LANE_GAP + LANE_GAP / 2;
};
export const heightOf = (chart: Chart): number => AXIS + chart.rows * ROW + chart.lanes.length * LANE_GAP + COST + 8;
/** Return the row at a height of the visible part, or -1. */
export function rowAt(chart: Chart, view: View, y: number): number {
  for (const lane of chart.lanes) {
    for (let row = lane.firstRow; row < lane.firstRow + lane.rows; row++) {
      const top = topOfRow(chart, row) - view.scrollTop;
      if (y >= top && y < top + ROW) return row;
    }
  }
  return -1;
}

/** Return the colours of the page's theme. */
export function readPalette(): Palette {
  const styles = getComputedStyle(document.documentElement);
  const found = new Map<string, string>();
  return (token) => {
    if (!found.has(token)) found.set(token, styles.getPropertyValue(token).trim());
    return found.get(token)!;
  };
}

/** Fill of each phase. A striped one is a pattern of lines over the page's background. */
function fills(context: CanvasRenderingContext2D, palette: Palette): (phase: Phase) => string | CanvasPattern {
  const made = new Map<Phase, string | CanvasPattern>();
  return (phase) => {
    const known = made.get(phase);
    if (known) return known;
    const style = PHASES[phase];
    const fill = style.isStriped ? (stripes(context, palette(style.colour), palette("--canvas")) ?? palette(style.colour)) : palette(style.colour);
    made.set(phase, fill);
    return fill;
  };
}

function stripes(context: CanvasRenderingContext2D, colour: string, background: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  if (!pen) return null;
  pen.fillStyle = background;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  for (const shift of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat");
}

/** Rectangles of one fill, painted together: to change the fill for each of thousands takes most of the time. */
class Batches {
  private readonly paths = new Map<string | CanvasPattern, Path2D>();

  add(fill: string | CanvasPattern, x: number, y: number, width: number, height: number): void {
    let path = this.paths.get(fill);
    if (!path) this.paths.set(fill, (path = new Path2D()));
    path.rect(x, y, width, height);
  }

  paint(context: CanvasRenderingContext2D): void {
    for (const [fill, path] of this.paths) {
      context.fillStyle = fill;
      context.fill(path);
    }
  }
}

/** Paint everything but the outlines of the chosen pieces. */
export function paint(context: CanvasRenderingContext2D, chart: Chart, view: View, names: Names, palette: Palette): void {
  const ratio = devicePixelRatio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = palette("--canvas");
  context.fillRect(0, 0, view.width, view.height);
  const fill = fills(context, palette);
  context.textBaseline = "middle";
  const axis = axisMarks(view.from, view.to, Math.max(2, Math.floor((view.width - view.gutter) / 90)));
  context.save();
  context.beginPath();
  context.rect(0, AXIS, view.width, view.height - AXIS - COST);
  context.clip();
  const visible = chart.lanes.map((lane) => ({ lane, top: topOfRow(chart, lane.firstRow) - view.scrollTop, height: lane.rows * ROW })).filter(({ top, height }) => top + height >= AXIS && top <= view.height - COST);
  context.fillStyle = palette("--lane-2");
  for (const { top, height } of visible) context.fillRect(view.gutter, top - 3, view.width - view.gutter, height + 6);
  paintStops(context, chart, view, palette);
  paintGrid(context, axis.marks, view, palette);
  context.font = "500 12px 'Inter Variable', sans-serif";
  const batches = new Batches();
  for (const { lane, top, height } of visible) {
    for (const bar of lane.bars) addBar(batches, bar, top + bar.row * ROW, view, palette, fill);
    addTicks(batches, lane.ticks, top + height, view, palette);
  }
  batches.paint(context);
  for (const { lane, top } of visible) {
    context.fillStyle = palette("--ink");
    context.fillText(fitMiddle(context, names.agent(lane.agentId), view.gutter - 20), 12, top + TITLE + BAR / 2);
    const ends: number[] = [];
    for (const bar of lane.bars) ends[bar.row] = paintTitle(context, bar, top + bar.row * ROW, view, names, palette, ends[bar.row] ?? view.gutter);
  }
  context.restore();
  paintAxis(context, axis, view, palette);
  paintCosts(context, chart, view, palette);
}

function addBar(batches: Batches, bar: Bar, top: number, view: View, palette: Palette, fill: (phase: Phase) => string | CanvasPattern): void {
  const extent = barExtent(xOf(view, bar.from), xOf(view, bar.to), { left: view.gutter, right: view.width }, MIN_BAR);
  if (!extent) return;
  if (xOf(view, bar.to) - xOf(view, bar.from) < MIN_BAR) {
    const longest = bar.pieces.reduce((one, other) => (other.to - other.from > one.to - one.from ? other : one));
    batches.add(fill(longest.span.phase), extent.x, top + TITLE, extent.width, BAR);
    if (bar.pieces.some((piece) => piece.span.failed)) batches.add(palette("--fail-dot"), extent.x, top + TITLE + BAR - 3, extent.width, 3);
    return;
  }
  let painted = -1;
  for (const { span, from, to } of bar.pieces) {
    const left = xOf(view, from);
    const end = Math.min(view.width, Math.max(xOf(view, to), left + (PHASES[span.phase].isWait ? MIN_PIECE : MIN_WORK)));
    // Thousands of pieces may fall on one pixel; one of them is painted.
    if (end < view.gutter || left > view.width || end <= painted + 0.5) continue;
    // Not over a piece before it that was widened: the order of painting is that of the colours.
    const start = Math.max(view.gutter, left, painted);
    batches.add(fill(span.phase), start, top + TITLE, Math.max(MIN_PIECE, end - start), BAR);
    if (span.failed) batches.add(palette("--fail-dot"), start, top + TITLE + BAR - 3, Math.max(2, end - start), 3);
    painted = end;
  }
}

/** Write a bar's title above it, and beside it if the bar is short. `before` is the end of the title before it in the row; return the new end. */
function paintTitle(context: CanvasRenderingContext2D, bar: Bar, top: number, view: View, names: Names, palette: Palette, before: number): number {
  const frame = { left: view.gutter, right: view.width };
  const extent = barExtent(xOf(view, bar.from), xOf(view, bar.to), frame, MIN_BAR);
  if (!extent) return before;
  const next = bar.nextFrom === Infinity ? Infinity : xOf(view, bar.nextFrom) - TITLE_GAP;
  // Most bars of a long run have no room: their titles need not be measured.
  if (Math.min(next, frame.right) - extent.x < MIN_TITLE && next < frame.right) return before;
  const title = names.node(bar.nodeId);
  const place = titleExtent({ x: extent.x, next }, widthOf(context, title), { right: frame.right - 4 }, before, MIN_TITLE);
  if (!place) return before;
  const text = fit(context, title, place.width);
  context.fillStyle = palette("--ink-2");
  context.fillText(text, place.x, top + TITLE / 2);
  return place.x + widthOf(context, text) + TITLE_GAP;
}

function addTicks(batches: Batches, ticks: Chart["lanes"][number]["ticks"], bottom: number, view: View, palette: Palette): void {
  let painted = -2;
  for (const { tick, at } of ticks) {
    const x = xOf(view, at);
    if (x < view.gutter || x > view.width || (x - painted < 1.5 && !tick.failed)) continue;
    painted = x;
    const colour = tick.failed ? "--fail-dot" : tick.kind === "tool" ? "--ink-3" : tick.kind === "question" || tick.kind === "answer" ? "--wait-dot" : "--work-dot";
    batches.add(palette(colour), x, bottom - ROW + TITLE + BAR + 1, 1.5, tick.kind === "tool" ? 4 : 6);
  }
}

/** Paint a frame around a piece. */
export function outline(context: CanvasRenderingContext2D, chart: Chart, view: View, palette: Palette, piece: Piece | null, width: number): void {
  const lane = piece && chart.lanes.find((one) => one.agentId === piece.span.agent_id);
  const bar = lane?.bars.find((one) => one.nodeId === piece!.span.node_id && one.pieces.includes(piece!));
  if (!piece || !lane || !bar) return;
  const left = Math.max(view.gutter, xOf(view, piece.from));
  const right = Math.min(view.width, Math.max(xOf(view, piece.to), left + 3));
  const top = topOfRow(chart, lane.firstRow + bar.row) - view.scrollTop + TITLE - 1.5;
  if (right < view.gutter || left > view.width || top < AXIS || top + BAR > view.height - COST) return;
  context.strokeStyle = palette("--ink");
  context.lineWidth = width;
  context.strokeRect(left - 1, top, right - left + 2, BAR + 3);
}

/** Paint a band behind all lanes for each time in which all work was stopped. */
function paintStops(context: CanvasRenderingContext2D, chart: Chart, view: View, palette: Palette): void {
  for (const { from, to } of chart.stops) {
    const extent = barExtent(xOf(view, from), xOf(view, to), { left: view.gutter, right: view.width }, MIN_BAR);
    if (!extent) continue;
    context.fillStyle = palette("--wait-bg");
    context.fillRect(extent.x, AXIS, extent.width, view.height);
    context.fillStyle = palette("--wait-dot");
    context.fillRect(extent.x, AXIS, 1, view.height);
    context.fillRect(extent.x + extent.width - 1, AXIS, 1, view.height);
  }
}

function paintGrid(context: CanvasRenderingContext2D, marks: readonly number[], view: View, palette: Palette): void {
  context.fillStyle = palette("--line");
  for (const mark of marks) {
    const x = xOf(view, mark);
    if (x >= view.gutter) context.fillRect(x, 0, 1, view.height);
  }
}

function paintAxis(context: CanvasRenderingContext2D, { marks, stepMs }: ReturnType<typeof axisMarks>, view: View, palette: Palette): void {
  context.fillStyle = palette("--canvas");
  context.fillRect(0, 0, view.width, AXIS);
  context.font = "400 11px 'Inter Variable', sans-serif";
  let day = "";
  let written = view.gutter;
  for (const mark of marks) {
    const x = xOf(view, mark);
    if (x < view.gutter) continue;
    const at = new Date(mark).toISOString();
    const isNewDay = dayKey(at) !== day && day !== "";
    day = dayKey(at);
    const text = isNewDay || stepMs >= 86_400_000 ? new Date(mark).toLocaleDateString(undefined, { day: "numeric", month: "short" }) : stepMs < 60_000 ? clockTimeWithSeconds(at) : clockTime(at);
    context.fillStyle = palette("--ink-3");
    // The last one is moved to the left rather than cut.
    const start = Math.min(x + 4, view.width - 4 - widthOf(context, text));
    if (start >= written) context.fillText(text, start, AXIS / 2);
    written = start + widthOf(context, text) + 4;
    context.fillStyle = palette("--line");
    context.fillRect(x, 0, 1, AXIS);
  }
  context.fillStyle = palette("--line-2");
  context.fillRect(0, AXIS - 1, view.width, 1);
}

/** Draw the cost of all calls over time, as a strip at the bottom. */
function paintCosts(context: CanvasRenderingContext2D, chart: Chart, view: View, palette: Palette): void {
  const top = view.height - COST;
  context.fillStyle = palette("--canvas");
  context.fillRect(0, top, view.width, COST);
  context.fillStyle = palette("--line-2");
  context.fillRect(0, top, view.width, 1);
  const total = chart.costs.at(-1)?.usd ?? 0;
  context.fillStyle = palette("--ink-2");
  context.font = "500 12px 'Inter Variable', sans-serif";
  // Paid searches are on the cost page, not in the events of model calls.
  context.fillText(fit(context, "Model calls", view.gutter - 16), 12, top + 16);
  context.font = "400 11px 'Inter Variable', sans-serif";
  context.fillText(money(total), 12, top + 31);
  if (total === 0) return;
  const y = (usd: number): number => top + COST - 4 - (usd / total) * (COST - 10);
  context.save();
  context.beginPath();
  context.rect(view.gutter, top, view.width - view.gutter, COST);
  context.clip();
  context.beginPath();
  context.moveTo(view.gutter, y(0));
  let last = 0;
  for (const { at, usd } of chart.costs) {
    const x = xOf(view, at);
    context.lineTo(x, y(last));
    context.lineTo(x, y(usd));
    last = usd;
  }
  context.lineTo(view.width, y(last));
  context.strokeStyle = palette("--done-dot");
  context.lineWidth = 1.5;
  context.stroke();
  context.restore();
}

const widths = new Map<string, number>();
const MAX_WIDTHS = 5000;

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font}\n${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > MAX_WIDTHS) widths.clear();
    widths.set(key, (width = context.measureText(text).width));
  }
  return width;
}

/** Return a name, shortened in its middle: names such as Translator-12 differ at their ends. */
function fitMiddle(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (widthOf(context, text) <= width) return text;
  const end = text.slice(-3);
  return `${fit(context, text.slice(0, -3), width - widthOf(context, end))}${end}`;
}

/** Return the text, shortened to a width. */
function fit(context: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = widthOf(context, text);
  if (whole <= width) return text;
  let end = Math.max(0, Math.floor(text.length * (width / whole)) - 1);
  while (end > 0 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return end === 0 ? "" : `${text.slice(0, end)}…`;
}
