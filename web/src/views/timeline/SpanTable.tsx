/** SpanTable: the timeline in words, as a table: one row for each stretch of time, newest first. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useMemo, useRef } from "react";
import { capitalize, duration, fullTime, money } from "@/lib/format";
import { rowsInGroups } from "@/lib/rowGroups";
import { waitingReason } from "@/lib/waitingReason";
import { costAt, layoutChart } from "@/views/timeline/gantt";
import { endOf, keyOf, PHASES, type Span, startOf } from "@/views/timeline/phases";
import { Swatch } from "@/views/timeline/Swatch";
import type { LoadedTimeline } from "@/views/timeline/timelineQuery";

const ROW_PX = 36;
const COLUMNS = "grid grid-cols-[minmax(96px,1fr)_minmax(140px,2fr)_minmax(180px,2fr)_170px_100px_76px_84px] items-center gap-3 px-4";

interface Props {
  timeline: LoadedTimeline;
  agents: readonly { id: string; name: string }[];
  now: number;
}

export function SpanTable({ timeline, agents, now }: Props) {
  const names = useMemo(() => new Map(agents.map((agent) => [agent.id, capitalize(agent.name)])), [agents]);
  const rows = useMemo(() => [...timeline.spans, ...timeline.open].sort((a, b) => startOf(b) - startOf(a)), [timeline]);
  const chart = useMemo(() => layoutChart(timeline.spans, [], [], 0), [timeline.spans]);
  const scroller = useRef<HTMLDivElement>(null);
  // The virtualizer computes the positions of all rows again when this function changes, so it must be stable.
  const rowKey = useCallback((index: number) => keyOf(rows[index]!), [rows]);
  const virtualizer = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, getItemKey: rowKey, overscan: 6, rangeExtractor: rowsInGroups, useFlushSync: false });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const count = items.length;
  const shown = useMemo(
    () =>
      rows.slice(first, first + count).map((span, at) => {
        const end = endOf(span, now);
        return <SpanRow key={keyOf(span)} span={span} end={end} agent={names.get(span.agent_id) ?? "Former member"} task={timeline.nodes.get(span.node_id)?.title ?? "Task"} usdSoFar={costAt(chart, end)} index={first + at} />;
      }),
    [rows, first, count, now, names, timeline.nodes, chart],
  );
  return (
    // A scroller whose background is opaque is moved by the compositor; another is painted again in each frame.
    <div ref={scroller} tabIndex={0} role="region" aria-label="Timeline as a table" className="scroll h-full bg-canvas outline-offset-[-2px]">
      <div role="table" aria-label="Stretches of time" aria-rowcount={rows.length + 1} className="min-w-[900px] text-sm">
        <div role="row" aria-rowindex={1} className={`${COLUMNS} sticky top-0 z-10 h-9 border-b border-line bg-canvas text-xs font-medium text-ink-2`}>
          {["Agent", "Task", "What", "Start", "Duration", "Cost", "Cost so far"].map((label) => (
            <span key={label} role="columnheader">
              {label}
            </span>
          ))}
        </div>
        {/* A layer of its own: below the fixed header, the browser would look in each frame for a layer for each cell. */}
        <div role="rowgroup" className="relative will-change-transform" style={{ height: virtualizer.getTotalSize() }}>
          {shown}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  span: Span;
  end: number;
  agent: string;
  task: string;
  usdSoFar: number;
  index: number;
}

/** One stretch of time. While the table is scrolled, only rows that come into view are rendered. */
const SpanRow = memo(function SpanRow({ span, end, agent, task, usdSoFar, index }: RowProps) {
  return (
    // `top` and not a transform: each transform would be a layer of its own.
    <div role="row" aria-rowindex={index + 2} className={`${COLUMNS} absolute inset-x-0 border-b border-line`} style={{ height: ROW_PX, top: index * ROW_PX }}>
      <span role="cell" dir="auto" className="truncate">{agent}</span>
      <span role="cell" dir="auto" className="truncate">{task}</span>
      <span role="cell" className="flex min-w-0 items-center gap-2">
        <Swatch phase={span.phase} />
        <span className="shrink-0">{PHASES[span.phase].label}</span>
        <span dir="auto" className="truncate text-xs text-ink-3">{waitingReason(span.label)}</span>
      </span>
      <span role="cell" className="tabular text-xs text-ink-2">{fullTime(span.start)}</span>
      <span role="cell" className="tabular text-xs">{duration(end - startOf(span))}{span.end === null && " so far"}</span>
      <span role="cell" className="tabular text-xs">{span.usd ? money(span.usd) : ""}</span>
      <span role="cell" className="tabular text-xs text-ink-2">{money(usdSoFar)}</span>
    </div>
  );
});
