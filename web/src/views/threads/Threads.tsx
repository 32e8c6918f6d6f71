/** Threads: every model call and tool call of each agent, in order. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronLeft, ScrollText } from "lucide-react";
import { type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { type Agent, api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { agentsQuery, nodeQuery, queryKeys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { plainText } from "@/reading/plainText";
import { searchedWords } from "@/reading/foundWords";
import { capitalize, duration, fullTime, money, plural, shortTime } from "@/lib/format";
import { live, useLive } from "@/live";
import type { Event } from "@/live/log";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { WindowLine } from "@/parts/WindowUse";
import { useShell } from "@/parts/shellState";
import { Avatar, Button, Chip, EmptyState, Loading, Pills, ErrorPanel } from "@/ui";
import { screenHref, type ScreenProps } from "@/lib/screens";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { useSearchParams } from "@/parts/useSearchParams";
import { useNow } from "@/parts/RelativeTime";
import { LANE_LABELS } from "@/parts/taskStatus";
import { type StepListHandle, StepList } from "@/views/threads/StepList";
import { PHASES } from "@/views/timeline/phases";
import { type Bar, keyOfTurn, timelineBars, type ModelStep, readingsOf, type Step, toSteps, type Turn } from "@/views/threads/steps";

type Thread = Schemas["ThreadView"];
const TURNS_PER_PAGE = 500;

/** Fetch all threads of an agent, oldest first, page by page. */
async function fetchThreads(agent: string): Promise<Thread[]> {
  const found: Thread[] = [];
  for (;;) {
    const page: Thread[] = await unwrap(api.GET("/api/agents/{agent}/threads", { params: { path: { agent }, query: { after: found.at(-1)?.id ?? "", limit: 500 } } }));
    found.push(...page);
    if (page.length < 500) return found;
  }
}

/** Return all turns of a thread. A turn never changes, so only turns after the cached ones are fetched. */
async function fetchTurns(thread: string): Promise<Turn[]> {
  const found = [...(queryClient.getQueryData<Turn[]>(queryKeys.thread(thread)) ?? [])];
  for (;;) {
    const page: Turn[] = await unwrap(api.GET("/api/threads/{thread}", { params: { path: { thread }, query: { after: found.at(-1)?.seq ?? 0, limit: TURNS_PER_PAGE } } }));
    found.push(...page);
    // The server leaves out internal journal entries, so a short page is not always the last one. An empty page is.
    if (page.length === 0) return found;
  }
}

/** Load the newest events of the team, if no page has: they say which calls were repaired. A thread is complete without them. */
function useEventLog(team: Team): void {
  const canLoad = useLive((state) => state.epoch !== null && !state.logs[team.id]);
  useEffect(() => {
    if (canLoad) live.loadNewest(team.id, team.coordinator_id).catch(() => {});
  }, [canLoad, team.id, team.coordinator_id]);
}

export default function Threads({ team, rest }: ScreenProps) {
  useEventLog(team);
  const id = rest.replace(/\/+$/, "");
  const isFolded = useNarrow(FOLD_PX);
  const agents = useQuery(agentsQuery(team.id));
  const [params, setParams] = useSearchParams();
  const members = agents.data ?? [];
  const all = useQueries({
    queries: members.map((agent) => ({ queryKey: queryKeys.threads(agent.id), queryFn: () => fetchThreads(agent.id) })),
    combine: (found) => ({ threads: found.flatMap((one) => one.data ?? []), isPending: found.some((one) => one.isPending), error: found.find((one) => one.error)?.error ?? null }),
  });
  const byId = new Map(members.map((agent, at) => [agent.id, { agent, at }]));
  const agentFilter = params.agent ?? "";
  const kind = (params.kind ?? "all") as "all" | Thread["kind"];
  const shown = all.threads
    .filter((thread) => (!agentFilter || thread.agent_id === agentFilter) && (kind === "all" || thread.kind === kind))
    .sort((a, b) => (a.id < b.id ? 1 : -1));
  const current = all.threads.find((thread) => thread.id === id);
  const titleOf = (thread: Thread): string => plainText(thread.title ?? "") || LANE_LABELS[thread.kind];
  const [limit, setLimit] = useState(100);

  return (
    <>
      <ScreenHeader team={team} title="Threads" facts={["Every prompt, answer and tool call of the agents"]} />
      <div className="flex min-h-0 flex-1">
        {(!isFolded || !id) && (
          <nav aria-label="Threads" className={cx("flex shrink-0 flex-col", isFolded ? "w-full" : "w-[320px] border-r border-line bg-rail")}>
            <div className="shrink-0 space-y-2 border-b border-line p-3">
              <select
                aria-label="Whose threads"
                value={agentFilter}
                onChange={(event) => setParams({ agent: event.target.value || undefined }, true)}
                className="h-8 w-full rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11"
              >
                <option value="">Everyone's</option>
                {members.map((agent) => (
                  <option key={agent.id} value={agent.id}>
                    {capitalize(agent.name)}
                  </option>
                ))}
              </select>
              <Pills label="Which threads" value={kind} onChange={(now) => setParams({ kind: now === "all" ? undefined : now }, true)} options={[["all", "All"], ["work", "Work"], ["reply", "Replies"], ["reflection", "Reflection"]]} />
            </div>
            <div className="scroll min-h-0 flex-1 p-2">
              {agents.isPending || (all.isPending && all.threads.length === 0) ? (
                <Loading label="Loading threads" />
              ) : all.error && all.threads.length === 0 ? (
                <ErrorPanel title="The threads could not be listed" detail={errorMessage(all.error)} />
              ) : shown.length === 0 ? (
                <EmptyState icon={<ScrollText />} title="No threads here yet">
                  A thread is created when an agent starts a task, answers you, or reflects on its work.
                </EmptyState>
              ) : (
                <ul>
                  {shown.slice(0, limit).map((thread) => {
                    const one = byId.get(thread.agent_id);
                    return (
                      <li key={thread.id}>
                        <Link
                          to={screenHref(team.id, "threads", thread.id) as "/"}
                          search={((now: object) => ({ ...now, step: undefined })) as never}
                          aria-current={thread.id === id ? "page" : undefined}
                          className={cx("flex min-h-12 items-center gap-2.5 rounded-sm px-2 py-1", thread.id === id ? "bg-press" : "hover:bg-hover")}
                        >
                          <Avatar name={one?.agent.name ?? "?"} order={one?.at ?? 0} isCoordinator={one?.agent.role === "coordinator"} className="size-6 rounded-full text-[11px]" />
                          <span className="min-w-0 flex-1">
                            <span dir="auto" className="block truncate text-sm">{titleOf(thread)}</span>
                            <span dir="auto" className="block truncate text-xs text-ink-3">
                              {capitalize(one?.agent.name ?? "")} · {LANE_LABELS[thread.kind]}
                              {thread.closed_at === null && " · open"}
                            </span>
                          </span>
                          <time dateTime={thread.created_at} title={fullTime(thread.created_at)} className="tabular text-xs text-ink-3">
                            {shortTime(thread.created_at)}
                          </time>
                        </Link>
                      </li>
                    );
                  })}
                </ul>
              )}
              {shown.length > limit && (
                <Button variant="ghost" className="w-full" onClick={() => setLimit(limit * 3)}>
                  {shown.length - limit} older
                </Button>
              )}
            </div>
          </nav>
        )}
        {(!isFolded || id) && (
          <section aria-label="Thread" className="flex min-w-0 flex-1 flex-col">
            {id ? (
              <ThreadPage key={id} id={id} thread={current} title={current ? titleOf(current) : "…"} agent={byId.get(current?.agent_id ?? "")?.agent} team={team.id} isFolded={isFolded} />
            ) : (
              <EmptyState icon={<ScrollText />} title="Select a thread to see every step">
                You see each prompt, each answer of the model, each tool call with its arguments and output, and the time and cost of every step.
              </EmptyState>
            )}
          </section>
        )}
      </div>
    </>
  );
}

/** Return how the calls of a thread were read. The map stays the same until a reading is added: the steps are made anew with it. */
function useReadings(team: string, thread: string): ReadonlyMap<string, string> {
  const known = useRef<{ events: readonly Event[]; readings: ReadonlyMap<string, string> }>({ events: [], readings: new Map() });
  return useLive((state) => {
    const events = state.logs[team]?.events ?? known.current.events;
    if (events !== known.current.events) {
      const found = readingsOf(events, thread);
      known.current = { events, readings: found.size === known.current.readings.size ? known.current.readings : found };
    }
    return known.current.readings;
  });
}

/** Open the step that the URL names, once it is loaded: a search has found it. */
function useFoundStep(all: Step[], list: RefObject<StepListHandle | null>): void {
  const seq = Number(useSearchParams()[0].step ?? 0);
  const repeatedJumps = useShell((state) => state.repeatedJumps);
  const shown = useRef("");
  useEffect(() => {
    const jump = `${seq} ${repeatedJumps}`;
    const words = searchedWords();
    const key = seq > 0 && shown.current !== jump ? keyOfTurn(all, seq, words) : undefined;
    if (key === undefined || !list.current) return;
    shown.current = jump;
    list.current.reveal(key, words);
  }, [all, seq, repeatedJumps, list]);
}

function ThreadPage({ id, thread, title, agent, team, isFolded }: { id: string; thread: Thread | undefined; title: string; agent: Agent | undefined; team: string; isFolded: boolean }) {
  const query = useQuery({ queryKey: queryKeys.thread(id), queryFn: () => fetchTurns(id), structuralSharing: false });
  const draft = useLive((state) => state.drafts[id]);
  const readings = useReadings(team, id);
  const all = useMemo(() => toSteps(query.data ?? [], readings), [query.data, readings]);
  const isOpen = thread?.closed_at === null;
  const hasOpenCall = isOpen && all.some((step) => step.kind === "model" && step.calls.some((call) => call.endedAt === null));
  // A call without a result may run, or wait for somebody: its task says which.
  const status = useQuery({ ...nodeQuery(thread?.node_id ?? ""), enabled: hasOpenCall && Boolean(thread?.node_id) }).data?.status;
  const isRunning = hasOpenCall && (status === undefined || status === "running");
  const now = useNow(1000, isRunning);
  const models = all.filter((step): step is ModelStep => step.kind === "model");
  const calls = models.flatMap((step) => step.calls);
  const usd = models.reduce((sum, step) => sum + (step.usd ?? 0), 0);
  const list = useRef<StepListHandle>(null);
  useFoundStep(all, list);
  return (
    <>
      <div className="flex min-h-[52px] shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2 max-md:px-1">
        {isFolded && (
          <Link to={screenHref(team, "threads") as "/"} aria-label="Back to the threads" className="flex size-10 items-center justify-center">
            <ChevronLeft className="size-4" />
          </Link>
        )}
        <div className="min-w-0 flex-1">
          <h2 dir="auto" className="truncate text-sm font-semibold">{title}</h2>
          <p className="tabular truncate text-xs text-ink-3">
            {[agent && capitalize(agent.name), plural(models.length, "model call"), plural(calls.length, "tool call"), usd > 0 && money(usd), thread && shortTime(thread.created_at)].filter(Boolean).join(" · ")}
          </p>
        </div>
        {isOpen && <Chip tone="work">Open</Chip>}
        {thread?.node_id && thread.kind === "work" && (
          <Link to={screenHref(team, "board", "", `?node=${thread.node_id}`) as "/"} className="shrink-0 text-xs max-sm:pr-2 text-ink-2 underline decoration-line-2 underline-offset-2 hover:decoration-ink">
            On the board
          </Link>
        )}
      </div>
      {query.isPending ? (
        <Loading label="Loading the thread" />
      ) : query.isError && !query.data ? (
        <ErrorPanel title="The thread could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
      ) : all.length === 0 ? (
        <EmptyState icon={<ScrollText />} title="No steps yet">
          Its first step appears here as soon as it is recorded.
        </EmptyState>
      ) : (
        <>
          <Timeline all={all} now={isRunning ? now : null} onPick={(key) => list.current?.reveal(key)} />
          <WindowLine thread={id} isOpen={isOpen} />
          <StepList all={all} now={isRunning ? now : null} handle={list}>
            {draft?.text && (
              <div className="mx-4 mb-8 rounded-md border border-dashed border-line-2 p-3 text-sm max-md:mx-3">
                <p className="mb-1 text-xs font-medium text-work">Writing…</p>
                <p dir="auto" className="whitespace-pre-wrap">{draft.text}</p>
              </div>
            )}
          </StepList>
        </>
      )}
    </>
  );
}

const MAX_BARS = 400;
function Timeline({ all, now, onPick }: { all: Step[]; now: number | null; onPick: (key: string) => void }) {
  const { bars: drawn, busyMs, pausedMs } = useMemo(() => timelineBars(all, now), [all, now]);
  const shownBars = drawn.slice(-MAX_BARS);
  if (drawn.length === 0) return null;
  return (
    <figure className="shrink-0 border-b border-line bg-canvas px-4 py-2.5 max-md:px-3" aria-label="Timeline">
      <Track name="Model" phase="model" bars={shownBars.filter((bar) => bar.kind === "model")} onPick={onPick} />
      <Track name="Tools" phase="tool" bars={shownBars.filter((bar) => bar.kind === "tool")} onPick={onPick} />
      <figcaption className="tabular mt-0.5 pl-[52px] text-xs text-ink-3">
        {duration(busyMs)} at work{pausedMs >= 1000 && `, ${duration(pausedMs)} of waiting`}
        {drawn.length > shownBars.length && ` · the last ${shownBars.length} of ${drawn.length} steps`}
      </figcaption>
    </figure>
  );
}

const VIEWBOX_WIDTH = 1000;
/** One row of the timeline, as three SVG paths. One element for each bar would cost several milliseconds in every frame. */
function Track({ name, phase, bars, onPick }: { name: string; phase: Bar["kind"]; bars: Bar[]; onPick: (key: string) => void }) {
  // The same colours as in the team's timeline.
  const { colour } = PHASES[phase];
  const barGroups = [
    ["", "--fail-dot", bars.filter((bar) => bar.failed)],
    ["animate-pulse", colour, bars.filter((bar) => !bar.failed && bar.isOpen)],
    ["", colour, bars.filter((bar) => !bar.failed && !bar.isOpen)],
  ] as const;
  const barAt = (event: React.MouseEvent<SVGSVGElement>): Bar | undefined => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = (event.clientX - left) / Math.max(width, 1);
    const distancePx = (bar: Bar) => Math.max(bar.from - at, at - bar.to, 0) * width;
    return bars.filter((bar) => distancePx(bar) < 6).toSorted((a, b) => distancePx(a) - distancePx(b))[0];
  };
  const updateTooltip = (event: React.MouseEvent<SVGSVGElement>) => {
    const bar = barAt(event);
    event.currentTarget.parentElement!.title = bar ? `${bar.label} · ${duration(bar.ms)}${bar.failed ? " · failed" : ""}` : "";
    event.currentTarget.style.cursor = bar ? "pointer" : "";
  };
  const pickBar = (event: React.MouseEvent<SVGSVGElement>) => {
    const bar = barAt(event);
    if (bar) onPick(bar.key);
  };
  return (
    <div className="flex items-center gap-2" aria-hidden>
      <span className="w-11 shrink-0 text-xs text-ink-3">{name}</span>
      <div className="h-6 min-w-0 flex-1">
        <svg className="size-full" viewBox={`0 0 ${VIEWBOX_WIDTH} 24`} preserveAspectRatio="none" onMouseMove={updateTooltip} onClick={pickBar}>
          <path d={`M0 12H${VIEWBOX_WIDTH}`} className="stroke-line" vectorEffect="non-scaling-stroke" />
          {barGroups.map(([motion, token, group], index) => (
            // The SVG is stretched to the width of the page, the stroke is not: so even the shortest step is visible.
            <path key={index} d={group.map(barPath).join("")} className={cx("fill-current stroke-current", motion)} style={{ color: `var(${token})` }} strokeWidth={3} strokeLinejoin="round" vectorEffect="non-scaling-stroke" />
          ))}
        </svg>
      </div>
    </div>
  );
}

const barPath = (bar: Bar): string => `M${(bar.from * VIEWBOX_WIDTH).toFixed(2)} 6V18H${(bar.to * VIEWBOX_WIDTH).toFixed(2)}V6Z`;
