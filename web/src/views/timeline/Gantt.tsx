/** Gantt: a timeline with a lane for each agent. It is drawn on a canvas, moved with pointer and keyboard, and every bar can be read in words. */
import { Link } from "@tanstack/react-router";
import { Maximize, Minus, Plus } from "lucide-react";
import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { capitalize, clockTimeWithSeconds, duration, money, plural } from "@/lib/format";
import { waitingReason } from "@/lib/waitingReason";
import { Button, IconButton } from "@/ui";
import { screenHref } from "@/lib/screens";
import { costAt, eventAt, layoutChart, type Place, type Piece, pieceAt, step } from "@/views/timeline/gantt";
import { AXIS, COST, heightOf, type Names, outline, paint, readPalette, ROW, rowAt, timeAt, topOfRow, type View } from "@/views/timeline/paint";
import { PHASE_ORDER, PHASES } from "@/views/timeline/phases";
import { Swatch } from "@/views/timeline/Swatch";
import type { LoadedTimeline } from "@/views/timeline/timelineQuery";

const GUTTER = 132;
const GUTTER_PHONE = 84;
/** The shortest time that the window can show. */
const MIN_RANGE_MS = 500;
/** A piece can be hit from this many pixels away. */
const SLACK_PX = 6;

interface Props {
  team: string;
  timeline: LoadedTimeline;
  agents: readonly { id: string; name: string }[];
  now: number;
}

export function Gantt({ team, timeline, agents, now }: Props) {
  const names = useMemo((): Names => {
    const byId = new Map(agents.map((agent) => [agent.id, capitalize(agent.name)]));
    return { agent: (id) => byId.get(id) ?? "Former member", node: (id) => timeline.nodes.get(id)?.title ?? "Task" };
  }, [agents, timeline.nodes]);
  const chart = useMemo(() => layoutChart([...timeline.spans, ...timeline.open], timeline.ticks, agents.map((agent) => agent.id), now, timeline.stops), [timeline, agents, now]);

  const usdByNode = useMemo(() => costs(timeline.spans), [timeline.spans]);

  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [scrollTop, setScrollTop] = useState(0);
  // Null: everything is shown, also as the team works on.
  const [range, setRange] = useState<{ from: number; to: number } | null>(null);
  const [place, setPlace] = useState<Place | null>(null);
  const [hovered, setHovered] = useState<Piece | null>(null);
  const pad = Math.max((chart.to - chart.from) * 0.02, MIN_RANGE_MS / 2);
  const whole = { from: chart.from - pad, to: chart.to + pad };
  const view: View = { ...size, gutter: size.width < 560 ? GUTTER_PHONE : GUTTER, scrollTop, ...(range ?? whole) };
  const selected = place ? (chart.lanes[place.lane]?.bars[place.bar]?.pieces[place.piece] ?? null) : null;
  const theme = useTheme();

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // Draw at most once a frame, however many events arrive. Once it rests, the chart is kept as a picture, so that pointing at a bar paints only a frame.
  const palette = useMemo(() => readPalette(), [theme]); // eslint-disable-line
  const painted = useRef<unknown[]>(undefined);
  const picture = useRef<{ canvas: HTMLCanvasElement; of: unknown[] } | null>(null);
  useEffect(() => {
    const request = requestAnimationFrame(() => {
      const context = canvas.current?.getContext("2d");
      if (!context || view.width === 0) return;
      const ratio = devicePixelRatio;
      const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
      if (context.canvas.width !== width || context.canvas.height !== height) Object.assign(context.canvas, { width, height });
      const of = [chart, names, palette, width, height, view.from, view.to, view.scrollTop];
      const isSame = (other: unknown[] | undefined) => other !== undefined && of.every((one, index) => one === other[index]);
      if (!isSame(painted.current)) {
        // While the chart moves, no picture is kept: it would have to be painted twice.
        paint(context, chart, view, names, palette);
        painted.current = of;
      } else {
        if (!isSame(picture.current?.of)) {
          const behind = picture.current?.canvas ?? document.createElement("canvas");
          if (behind.width !== width || behind.height !== height) Object.assign(behind, { width, height });
          picture.current = { canvas: behind, of };
          paint(behind.getContext("2d")!, chart, view, names, palette);
        }
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.drawImage(picture.current!.canvas, 0, 0);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      outline(context, chart, view, palette, hovered, 1);
      outline(context, chart, view, palette, selected, 2);
    });
    return () => cancelAnimationFrame(request);
  });

  /** Show this part of the time, inside the run and not narrower than half a second. */
  const show = useCallback(
    (from: number, to: number) => {
      const length = Math.max(MIN_RANGE_MS, to - from);
      if (length >= whole.to - whole.from) return setRange(null);
      const start = Math.min(Math.max(from, whole.from), whole.to - length);
      setRange({ from: start, to: start + length });
    },
    [whole.from, whole.to],
  );
  const zoom = useCallback(
    (factor: number, around = (view.from + view.to) / 2) => show(around - (around - view.from) * factor, around + (view.to - around) * factor),
    [show, view.from, view.to],
  );
  const pan = useCallback((ms: number) => range && show(range.from + ms, range.to + ms), [range, show]);

  // React adds wheel listeners as passive ones, which cannot keep the page from zooming.
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const onWheel = (event: WheelEvent) => {
      const isZoom = event.ctrlKey || event.metaKey;
      const dx = event.shiftKey ? event.deltaY : event.deltaX;
      if (!isZoom && Math.abs(dx) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
      event.preventDefault();
      const box = element.getBoundingClientRect();
      if (isZoom) zoom(Math.exp(event.deltaY * 0.002), timeAt(view, event.clientX - box.left));
      else pan((dx / (view.width - view.gutter)) * (view.to - view.from));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const find = (event: PointerEvent): { place: Place; piece: Piece } | null => {
    const box = frame.current!.getBoundingClientRect();
    const y = event.clientY - box.top;
    if (y < AXIS || y > view.height - COST) return null;
    const found = pieceAt(chart, rowAt(chart, view, y), timeAt(view, event.clientX - box.left), (SLACK_PX / Math.max(1, view.width - view.gutter)) * (view.to - view.from));
    if (!found) return null;
    const lane = chart.lanes.findIndex((one) => one.bars.includes(found.bar));
    return { piece: found.piece, place: { lane, bar: chart.lanes[lane]!.bars.indexOf(found.bar), piece: found.bar.pieces.indexOf(found.piece) } };
  };
  const drag = useRef<{ x: number; from: number; to: number; hasMoved: boolean } | null>(null);

  function onPointerDown(event: PointerEvent) {
    drag.current = { x: event.clientX, from: view.from, to: view.to, hasMoved: false };
  }
  function onPointerMove(event: PointerEvent) {
    const held = drag.current;
    if (held && event.buttons > 0) {
      const shift = ((held.x - event.clientX) / Math.max(1, view.width - view.gutter)) * (held.to - held.from);
      if (Math.abs(held.x - event.clientX) > 3) held.hasMoved = true;
      if (held.hasMoved && range) show(held.from + shift, held.to + shift);
      return;
    }
    const piece = find(event)?.piece ?? null;
    if (piece !== hovered) setHovered(piece);
  }
  function onPointerUp(event: PointerEvent) {
    const hasMoved = drag.current?.hasMoved ?? false;
    drag.current = null;
    if (!hasMoved) setPlace(find(event)?.place ?? null);
  }

  /** Bring a piece into view. */
  function reveal(next: Place | null) {
    setPlace(next);
    const lane = next && chart.lanes[next.lane];
    const bar = lane?.bars[next!.bar];
    const piece = bar?.pieces[next!.piece];
    if (!lane || !bar || !piece) return;
    const top = topOfRow(chart, lane.firstRow + bar.row);
    const scroller = frame.current!;
    if (top - AXIS < scroller.scrollTop) scroller.scrollTop = top - AXIS - 8;
    else if (top + ROW > scroller.scrollTop + view.height - COST) scroller.scrollTop = top + ROW - view.height + COST + 8;
    if (range && (piece.to < range.from || piece.from > range.to)) show(piece.from - (range.to - range.from) / 4, piece.from + (3 * (range.to - range.from)) / 4);
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(Arrow|Home$|End$)/.test(event.key)) {
      event.preventDefault();
      if (event.shiftKey) pan((event.key === "ArrowLeft" ? -0.2 : 0.2) * (view.to - view.from));
      else reveal(step(chart, place, event.key));
    } else if (event.key === "+" || event.key === "=") zoom(0.6, selected?.from);
    else if (event.key === "-") zoom(1 / 0.6, selected?.from);
    else if (event.key === "0") setRange(null);
  }

  const shown = hovered ?? selected;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Legend totals={chart.totals} stoppedMs={chart.stops.reduce((sum, stop) => sum + stop.to - stop.from, 0)} />
      <div
        ref={frame}
        id="gantt"
        role="group"
        aria-roledescription="timeline"
        aria-label="Timeline. The arrow keys move from bar to bar, plus and minus zoom, zero shows everything."
        tabIndex={0}
        onKeyDown={onKeyDown}
        onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={() => (drag.current = null)}
        onPointerLeave={() => setHovered(null)}
        // A finger moves the chart to the side; up and down the page scrolls by itself.
        className="scroll relative touch-pan-y min-h-0 flex-1 outline-offset-[-2px]"
      >
        <div style={{ height: Math.max(heightOf(chart), size.height) }}>
          <canvas ref={canvas} aria-hidden className="sticky top-0 block" style={{ width: size.width, height: size.height }} />
        </div>
      </div>
      <div className="flex min-h-[74px] shrink-0 items-center gap-3 border-t border-line px-4 py-2 max-md:flex-wrap">
        <div aria-live="polite" className="min-w-0 flex-1 max-md:basis-full">
          {shown ? (
            <Details piece={shown} team={team} names={names} usd={costAt(chart, shown.to)} nodeUsd={usdByNode.get(shown.span.node_id) ?? 0} seq={eventAt(timeline.spans, timeline.ticks, shown.from)} />
          ) : (
            <>
              <p className="text-xs text-ink-3">
                {plural(timeline.spans.length + timeline.open.length, "span")} of {plural(chart.lanes.length, "agent")}. <span className="pointer-coarse:hidden">Point at a bar, or move with the arrow keys, to see what it is.</span>
                <span className="pointer-fine:hidden">Tap a bar to see what it is.</span>
              </p>
              <p className="text-xs text-ink-3 max-md:hidden">
                The chart shows all time, waits included. The time at work on the Board is without waits: it is the time that limits count.
                {timeline.otherUsd > 0 && ` The chart shows ${money(costAt(chart, Infinity))} for model calls. Web searches and side calls cost another ${money(timeline.otherUsd)}; their time is not recorded.`}
              </p>
            </>
          )}
        </div>
        <div className="flex shrink-0 items-center gap-1 max-md:ml-auto">
          <IconButton label="Zoom out" keys="-" onClick={() => zoom(1 / 0.6)}>
            <Minus className="size-4" />
          </IconButton>
          <IconButton label="Zoom in" keys="+" onClick={() => zoom(0.6)}>
            <Plus className="size-4" />
          </IconButton>
          <Button size="sm" onClick={() => setRange(null)} aria-disabled={range === null}>
            <Maximize aria-hidden className="size-3.5" /> Fit
          </Button>
        </div>
      </div>
    </div>
  );
}

/** Return what the model calls of each task have cost. */
function costs(spans: LoadedTimeline["spans"]): Map<string, number> {
  const usd = new Map<string, number>();
  for (const span of spans) if (span.usd) usd.set(span.node_id, (usd.get(span.node_id) ?? 0) + span.usd);
  return usd;
}

function Legend({ totals, stoppedMs }: { totals: ReadonlyMap<string, number>; stoppedMs: number }) {
  const shown = PHASE_ORDER.filter((phase) => (totals.get(phase) ?? 0) > 0);
  return (
    <ul aria-label="What the time went into" tabIndex={0} className="scroll flex shrink-0 gap-x-4 gap-y-1 border-b border-line px-4 py-2 text-xs text-ink-2 md:flex-wrap">
      {shown.map((phase) => (
        <li key={phase} className="flex shrink-0 items-center gap-1.5">
          <Swatch phase={phase} />
          {PHASES[phase].label} <span className="tabular text-ink-3">{duration(totals.get(phase)!)}</span>
        </li>
      ))}
      {stoppedMs > 0 && (
        <li className="flex shrink-0 items-center gap-1.5">
          <span aria-hidden className="inline-block h-2.5 w-4 shrink-0 rounded-[2px] border-x-2 border-wait-dot bg-wait-bg" />
          All work stopped <span className="tabular text-ink-3">{duration(stoppedMs)}</span>
        </li>
      )}
    </ul>
  );
}

function Details({ piece, team, names, usd, nodeUsd, seq }: { piece: Piece; team: string; names: Names; usd: number; nodeUsd: number; seq: number }) {
  const { span } = piece;
  return (
    <div className="min-w-0 text-sm">
      <p className="flex min-w-0 items-center gap-2">
        <Swatch phase={span.phase} />
        <span className="shrink-0 font-medium">{PHASES[span.phase].label}</span>
        <span className="tabular shrink-0 text-ink-2">{span.end === null ? `${duration(piece.to - piece.from)} so far` : duration(piece.to - piece.from)}</span>
        {span.failed && <span className="shrink-0 text-fail">failed</span>}
        <span dir="auto" className="truncate text-ink-2">
          {waitingReason(span.label)}
        </span>
      </p>
      <p className="flex min-w-0 items-center gap-2 text-xs text-ink-3 max-md:flex-wrap">
        <Link dir="auto" to={screenHref(team, "board", "", `?node=${span.node_id}`) as "/"} className="min-w-0 truncate text-ink-2 underline underline-offset-2 pointer-coarse:py-2">
          {names.node(span.node_id)}
        </Link>
        <Link to={screenHref(team, "timeline", "", `?view=replay&seq=${seq}`) as "/"} className="shrink-0 text-ink-2 underline underline-offset-2 pointer-coarse:py-2">
          Replay from here
        </Link>
        <span className="shrink-0">{names.agent(span.agent_id)}</span>
        <span className="tabular shrink-0">
          {clockTimeWithSeconds(span.start)}
          {span.end && `–${clockTimeWithSeconds(span.end)}`}
        </span>
        {span.attempt > 1 && <span className="shrink-0">attempt {span.attempt}</span>}
        <span className="tabular shrink-0 max-md:hidden">
          {span.usd ? `${money(span.usd)} here · ` : ""}
          {money(nodeUsd)} for the task · {money(usd)} for all model calls by then
        </span>
      </p>
    </div>
  );
}

/** Return the page's theme, and render again when it changes. */
function useTheme(): string {
  const [theme, setTheme] = useState(() => document.documentElement.dataset.theme ?? "");
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(document.documentElement.dataset.theme ?? ""));
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  return theme;
}
