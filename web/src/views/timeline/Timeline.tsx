/** Timeline: how a team's run went, as a chart, as a replay of its board and conversation, and as a log of events. */
import { useQuery } from "@tanstack/react-query";
import { ChartNoAxesGantt, History, ListTree } from "lucide-react";
import { Suspense } from "react";
import { lazyChunk } from "@/live/chunks";
import { errorMessage } from "@/api/client";
import { agentsQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { EmptyState, ErrorPanel, Loading, Pills } from "@/ui";
import type { ScreenProps } from "@/lib/screens";
import { useNow } from "@/parts/RelativeTime";
import { useSearchParams } from "@/parts/useSearchParams";
import { Gantt } from "@/views/timeline/Gantt";
import { SpanTable } from "@/views/timeline/SpanTable";
import { useTimeline } from "@/views/timeline/timelineQuery";

const Replay = lazyChunk(() => import("@/views/timeline/Replay"));
const EventLog = lazyChunk(() => import("@/views/timeline/EventLog"));
const VIEWS = [
  ["chart", "Timeline", ChartNoAxesGantt],
  ["replay", "Replay", History],
  ["log", "Events", ListTree],
] as const;

export default function Timeline({ team }: ScreenProps) {
  const [params, setParams] = useSearchParams();
  const view = params.view ?? "chart";
  return (
    <>
      <ScreenHeader team={team} title="Timeline">
        <div role="group" aria-label="How to show it" className="flex rounded-sm border border-line-2 p-0.5">
          {VIEWS.map(([name, label, Icon]) => (
            <button
              key={name}
              type="button"
              aria-pressed={view === name}
              onClick={() => setParams({ view: name })}
              className={cx("flex h-7 items-center gap-1.5 rounded-xs px-2.5 text-xs font-medium pointer-coarse:h-10 max-md:px-2", view === name ? "bg-press" : "text-ink-2 hover:bg-hover")}
            >
              <Icon className="size-3.5 max-md:hidden" aria-hidden /> {label}
            </button>
          ))}
        </div>
      </ScreenHeader>
      <div className="min-h-0 flex-1">
        <Suspense fallback={<Loading label="Loading" />}>{view === "replay" ? <Replay key={team.id} team={team} /> : view === "log" ? <EventLog key={team.id} team={team} /> : <ChartView team={team.id} />}</Suspense>
      </div>
    </>
  );
}

function ChartView({ team }: { team: string }) {
  const timeline = useTimeline(team);
  const agents = useQuery(agentsQuery(team));
  const [params, setParams] = useSearchParams();
  const now = useNow(1000, (timeline.data?.open.length ?? 0) > 0);
  if (timeline.isPending || agents.isPending) return <Loading label="Loading the timeline" />;
  if (!timeline.data) return <ErrorPanel title="The timeline could not be loaded" detail={errorMessage(timeline.error)} onRetry={() => void timeline.refetch()} />;
  if (timeline.data.spans.length + timeline.data.open.length === 0) {
    return (
      <EmptyState icon={<ChartNoAxesGantt />} title="Nothing has run yet">
        As soon as an agent works, its time appears here: when its model thinks, when its tools run, and what it waits for.
      </EmptyState>
    );
  }
  const shown = { timeline: timeline.data, agents: agents.data ?? [], now };
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 items-center gap-2 px-4 pt-2">
        <Pills label="How to read the timeline" value={params.as === "table" ? "table" : "chart"} onChange={(as) => setParams({ as: as === "table" ? as : undefined }, true)} options={[["chart", "Chart"], ["table", "Table"]]} />
        {shown.timeline.firstSeq > 1 && <p className="text-xs text-ink-3">The run is very long; its beginning is left out.</p>}
      </div>
      <div className="min-h-0 flex-1">{params.as === "table" ? <SpanTable {...shown} /> : <Gantt team={team} {...shown} />}</div>
    </div>
  );
}
