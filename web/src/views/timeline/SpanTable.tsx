/** SpanTable: the timeline in words, as a table: one row for each stretch of time, newest first. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { capitalize, duration, fullTime, money } from "@/lib/format";
import { costAt, layoutChart } from "@/views/timeline/gantt";
import { endOf, keyOf, PHASES, startOf } from "@/views/timeline/phases";
import { Swatch } from "@/views/timeline/Swatch";
import type { LoadedTimeline } from "@/views/timeline/timelineQuery";

const ROW_PX = 36;
const COLUMNS = "grid grid-cols-[minmax(96px,1fr)_minmax(140px,2fr)_minmax(180px,2fr)_170px_84px_76px_84px] items-center gap-3 px-4";

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
  const virtualizer = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, getItemKey: (index) => keyOf(rows[index]!), overscan: 12 });
  return (
    <div ref={scroller} tabIndex={0} role="region" aria-label="Timeline as a table" className="scroll h-full outline-offset-[-2px]">
      <div role="table" aria-label="Stretches of time" aria-rowcount={rows.length + 1} className="min-w-[900px] text-sm">
        <div role="row" aria-rowindex={1} className={`${COLUMNS} sticky top-0 z-10 h-9 border-b border-line bg-canvas text-xs font-medium text-ink-2`}>
          {["Agent", "Task", "What", "Start", "Duration", "Cost", "Cost so far"].map((label) => (
            <span key={label} role="columnheader">
              {label}
            </span>
          ))}
        </div>
        <div role="rowgroup" className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const span = rows[item.index]!;
            const end = endOf(span, now);
            return (
              <div key={item.key} role="row" aria-rowindex={item.index + 2} className={`${COLUMNS} absolute inset-x-0 top-0 border-b border-line`} style={{ height: item.size, transform: `translateY(${item.start}px)` }}>
                <span role="cell" className="truncate">{names.get(span.agent_id) ?? "Former member"}</span>
                <span role="cell" dir="auto" className="truncate">{timeline.nodes.get(span.node_id)?.title ?? "Task"}</span>
                <span role="cell" className="flex min-w-0 items-center gap-2">
                  <Swatch phase={span.phase} />
                  <span className="shrink-0">{PHASES[span.phase].label}</span>
                  <span dir="auto" className="truncate text-xs text-ink-3">{span.label}</span>
                </span>
                <span role="cell" className="tabular text-xs text-ink-2">{fullTime(span.start)}</span>
                <span role="cell" className="tabular text-xs">{duration(end - startOf(span))}{span.end === null && " …"}</span>
                <span role="cell" className="tabular text-xs">{span.usd ? money(span.usd) : ""}</span>
                <span role="cell" className="tabular text-xs text-ink-2">{money(costAt(chart, end))}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
