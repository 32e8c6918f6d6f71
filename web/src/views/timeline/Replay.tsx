/** Replay: a slider over a team's run. Board and conversation show what they were after the chosen event. */
import { useQuery } from "@tanstack/react-query";
import { Pause, Play, SkipBack, SkipForward } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { errorMessage, type Team } from "@/api/client";
import { agentsQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize, clockTimeWithSeconds, fullTime, money, plural } from "@/lib/format";
import { fencedWords, withoutMarks } from "@/reading/fence";
import { plainText } from "@/reading/plainText";
import { HUMAN, SYSTEM } from "@/lib/participants";
import { onNewEvents } from "@/live";
import type { Event, Row } from "@/live/log";
import { Button, EmptyState, ErrorPanel, IconButton, Loading, Pills } from "@/ui";
import Graph from "@/views/board/Graph";
import { progressOf, useFolds } from "@/views/tree/folds";
import { layoutTree } from "@/views/tree/layout";
import { stackAlike } from "@/views/tree/stacks";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { useSearchParams } from "@/parts/useSearchParams";
import { describeEvent } from "@/views/timeline/describeEvent";
import { cardsAt, CHUNK, chunkQuery, type Moment, momentQuery, rowsAt, treeAt, workOf } from "@/views/timeline/replayData";

/** While it plays, a run takes about this many steps, one every `STEP_MS`. */
const STEPS = 240;
const STEP_MS = 120;
/** While the slider is dragged, a moment is asked for at most this often. */
const ASK_MS = 90;
const ROWS_SHOWN = 60;

export default function Replay({ team }: { team: Team }) {
  const now = useQuery(momentQuery(team.id, null));
  const { refetch } = now;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onNewEvents((events) => {
      if (events.some((event) => event.team_id === team.id)) timer ??= setTimeout(() => ((timer = undefined), void refetch({ cancelRefetch: false })), 1000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [refetch, team.id]);
  if (now.isPending) return <Loading label="Loading the run" />;
  if (!now.data) return <ErrorPanel title="The run could not be loaded" detail={errorMessage(now.error)} onRetry={() => void refetch()} />;
  if (now.data.head === 0) return <EmptyState title="Nothing has happened yet">As soon as the team works, you can go back to any moment of its run here.</EmptyState>;
  return <ReplayAt team={team} now={now.data} />;
}

function ReplayAt({ team, now }: { team: Team; now: Moment }) {
  const [params, setParams] = useSearchParams();
  const asked = Number(params.seq);
  const head = now.head;
  const [seq, setSeq] = useState(() => (asked >= 1 && asked <= head ? asked : head));
  const [isPlaying, setIsPlaying] = useState(false);
  const steady = useThrottled(seq, ASK_MS);
  const moment = useQuery({ ...momentQuery(team.id, steady), enabled: steady !== head });
  const shown = steady === head ? now : (moment.data ?? now);
  const agents = useQuery(agentsQuery(team.id));
  const isNarrow = useNarrow(FOLD_PX);
  const [side, setSide] = useState<"board" | "talk">("board");

  const go = useCallback((to: number) => setSeq(Math.min(head, Math.max(1, Math.round(to)))), [head]);
  // A link to another moment, such as one of the event log.
  useEffect(() => {
    if (asked >= 1) go(asked);
  }, [asked]); // eslint-disable-line
  useEffect(() => {
    if (!isPlaying) return;
    const timer = setInterval(() => setSeq((before) => Math.min(head, before + Math.max(1, Math.ceil(head / STEPS)))), STEP_MS);
    return () => clearInterval(timer);
  }, [isPlaying, head]);
  useEffect(() => {
    if (isPlaying && seq >= head) setIsPlaying(false);
  }, [isPlaying, seq, head]);

  const chunk = Math.floor((seq - 1) / CHUNK);
  const current = useQuery(chunkQuery(team.id, chunk, head));
  const earlier = useQuery(chunkQuery(team.id, chunk - 1, head));
  const events = useMemo(() => [...(chunk > 0 ? (earlier.data ?? []) : []), ...(current.data ?? [])].sort((a, b) => a.seq - b.seq), [chunk, earlier.data, current.data]);
  const event = events.find((one) => one.seq === seq);

  const nowWork = useMemo(() => workOf(now), [now]);
  const shownWork = useMemo(() => workOf(shown), [shown]);
  const board = <MomentBoard team={team.id} now={nowWork} shown={shownWork} agents={agents.data ?? []} />;
  const talk = <MomentTalk events={events} seq={seq} team={team} agents={agents.data ?? []} nodes={now} />;
  return (
    <div className="flex h-full flex-col">
      <Controls seq={seq} head={head} event={event} moment={shown} agents={agents.data ?? []} isPlaying={isPlaying} onGo={go} onDone={(to) => setParams({ seq: String(to) }, true)} onPlay={() => (setIsPlaying(!isPlaying), seq >= head && !isPlaying && setSeq(1))} />
      {isNarrow && (
        <div className="shrink-0 border-b border-line px-4 py-1.5">
          <Pills label="What to show" value={side} onChange={setSide} options={[["board", "Board"], ["talk", "Conversation"]]} />
        </div>
      )}
      <div className="flex min-h-0 flex-1">
        {(!isNarrow || side === "board") && <div className="min-w-0 flex-1">{board}</div>}
        {(!isNarrow || side === "talk") && <aside aria-label="Conversation" className={cx("flex flex-col", isNarrow ? "w-full" : "w-[380px] shrink-0 border-l border-line")}>{talk}</aside>}
      </div>
    </div>
  );
}

interface ControlProps {
  seq: number;
  head: number;
  event: Event | undefined;
  moment: Moment;
  agents: readonly { id: string; name: string }[];
  isPlaying: boolean;
  onGo: (seq: number) => void;
  /** Writes the moment into the page's address. It is named, because `seq` is still the one before. */
  onDone: (seq: number) => void;
  onPlay: () => void;
}

function Controls({ seq, head, event, moment, agents, isPlaying, onGo, onDone, onPlay }: ControlProps) {
  const jump = (to: number) => {
    if (to < 1 || to > head) return;
    onGo(to);
    onDone(to);
  };
  const names = useMemo(() => {
    const byAgent = new Map(agents.map((agent) => [agent.id, agent.name]));
    const byNode = new Map(moment.nodes.map((node) => [node.id, node.title]));
    return { agent: (id: string) => byAgent.get(id), node: (id: string) => byNode.get(id) };
  }, [agents, moment]);
  const what = event ? describeEvent(event, names) : "";
  const task = event ? names.node(String((event.data as { node_id?: string }).node_id ?? "")) : undefined;
  const at = event?.at ?? moment.at;
  return (
    <div className="shrink-0 border-b border-line px-4 py-2">
      <div className="flex items-center gap-2">
        {/* Not `disabled` at the ends: a disabled button loses the focus of the person who has just pressed it. */}
        <IconButton label="One event back" aria-disabled={seq <= 1} onClick={() => jump(seq - 1)}>
          <SkipBack className="size-4" />
        </IconButton>
        <IconButton label={isPlaying ? "Pause" : "Play"} onClick={onPlay}>
          {isPlaying ? <Pause className="size-4" /> : <Play className="size-4" />}
        </IconButton>
        <IconButton label="One event forward" aria-disabled={seq >= head} onClick={() => jump(seq + 1)}>
          <SkipForward className="size-4" />
        </IconButton>
        <input
          type="range"
          aria-label="Moment of the run"
          aria-valuetext={`${at ? fullTime(at) : ""}, event ${seq} of ${head}. ${what}`}
          min={1}
          max={head}
          value={seq}
          onChange={(change) => onGo(Number(change.target.value))}
          onPointerUp={({ currentTarget }) => onDone(Number(currentTarget.value))}
          onKeyUp={({ currentTarget }) => onDone(Number(currentTarget.value))}
          className="mx-1 h-8 min-w-0 flex-1 outline-offset-0 pointer-coarse:h-11"
        />
        <Button size="sm" onClick={() => jump(head)} aria-disabled={seq >= head}>
          Now
        </Button>
      </div>
      <p className="mt-1 flex min-w-0 flex-wrap items-baseline gap-x-3 text-xs text-ink-2">
        <time dateTime={at ?? undefined} className="tabular shrink-0 font-medium text-ink">
          {at ? fullTime(at) : ""}
        </time>
        <span className="tabular min-w-0 text-ink-3">
          event {seq} of {head} · {plural(workOf(moment).nodes.length, "task")} · model calls {money(moment.usd)}
          {moment.other_usd > 0 && ` · web searches and side calls until today ${money(moment.other_usd)} (time not recorded)`}
        </span>
        <span dir="auto" className="min-w-0 flex-1 basis-60 truncate">
          {what}
          {task && ` — ${task}`}
        </span>
      </p>
    </div>
  );
}

/** The board at a moment. Its cards have the places that they have now, so that nothing jumps while time moves. */
function MomentBoard({ team, now, shown, agents }: { team: string; now: Moment; shown: Moment; agents: readonly { id: string; name: string; role: string }[] }) {
  const [, setParams] = useSearchParams();
  const stacked = useMemo(() => stackAlike(now.nodes), [now.nodes]);
  const { tree, fold } = useFolds(team, stacked.nodes, stacked.stacks, (id) => progressOf(now.nodes.find((node) => node.id === id)));
  const whole = useMemo(() => layoutTree(tree.nodes, now.stages), [tree, now.stages]);
  const cards = useMemo(() => cardsAt(shown, agents), [shown, agents]);
  const at = useMemo(() => treeAt(tree, whole, stacked.stacks, (id) => cards.has(id)), [tree, whole, stacked, cards]);
  const open = useCallback((id: string) => setParams({ view: "log", node: id }), [setParams]);
  if (now.nodes.length === 0) return <EmptyState title="No work yet">At this moment the team had no tasks.</EmptyState>;
  return <Graph {...at} cards={cards} selected={undefined} onOpen={open} onFold={fold} />;
}

function MomentTalk({ events, seq, team, agents, nodes }: { events: readonly Event[]; seq: number; team: Team; agents: readonly { id: string; name: string }[]; nodes: Moment }) {
  const [agent, setAgent] = useState(team.coordinator_id ?? agents[0]?.id ?? "");
  const rows = useMemo(() => rowsAt(events, seq, agent, team.coordinator_id ?? "").slice(-ROWS_SHOWN), [events, seq, agent, team.coordinator_id]);
  const titles = useMemo(() => new Map(nodes.nodes.map((node) => [node.id, node.title])), [nodes]);
  const nameOf = (id: string): string => (id === HUMAN ? "You" : id === SYSTEM ? "agiraph" : capitalize(agents.find((one) => one.id === id)?.name ?? "Former member"));
  const end = useRef<HTMLDivElement>(null);
  // In braces: what an effect returns is called later, and new browsers return a promise here.
  useEffect(() => {
    void end.current?.scrollIntoView({ block: "nearest" });
  }, [rows]);
  return (
    <>
      <div className="shrink-0 border-b border-line p-2">
        <select aria-label="Whose conversation" value={agent} onChange={(event) => setAgent(event.target.value)} className="h-8 w-full rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11">
          {agents.map((one) => (
            <option key={one.id} value={one.id}>
              {capitalize(one.name)}
            </option>
          ))}
        </select>
      </div>
      <div className="scroll min-h-0 flex-1 p-4" tabIndex={0} role="region" aria-label="Conversation at this moment">
        {rows.length === 0 ? <p className="text-sm text-ink-3">Nothing had been said or done by then.</p> : rows.map((row) => <TalkRow key={row.key} row={row} nameOf={nameOf} titleOf={(id) => titles.get(id) ?? "a task"} />)}
        <div ref={end} />
      </div>
    </>
  );
}

function TalkRow({ row, nameOf, titleOf }: { row: Row; nameOf: (id: string) => string; titleOf: (id: string) => string }) {
  const line = (words: ReactNode, className = "") => (
    <p dir="auto" className={cx("my-1.5 text-xs base:text-ink-3", className)}>
      <span className="tabular mr-2">{clockTimeWithSeconds(row.at)}</span>
      {words}
    </p>
  );
  switch (row.kind) {
    case "message":
      return (
        <article className="my-3 rounded-md border border-line bg-surface px-3 py-2">
          <p className="flex items-baseline justify-between gap-2 text-xs text-ink-3">
            <span className="font-medium text-ink-2">
              {nameOf(row.sender)} to {row.recipient === HUMAN ? "you" : nameOf(row.recipient)}
            </span>
            <time className="tabular">{clockTimeWithSeconds(row.at)}</time>
          </p>
          <p dir="auto" className="mt-1 line-clamp-12 text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
            {row.sender === HUMAN ? row.text : plainText(row.recipient === HUMAN ? withoutMarks(row.text) : fencedWords(row.text))}
          </p>
        </article>
      );
    case "tools":
      return line(row.calls.map((call) => call.name).join(", "), "font-mono");
    case "text":
      return line(withoutMarks(row.text), "line-clamp-4 text-ink-2");
    default:
      return line(row.text.replace("{node}", titleOf(row.nodeId ?? "")), row.tone === "fail" ? "text-fail" : "");
  }
}

/** Return the value, changed at most once in `ms`, and always to the last one. */
function useThrottled<T>(value: T, ms: number): T {
  const [shown, setShown] = useState(value);
  const last = useRef(0);
  useEffect(() => {
    const wait = Math.max(0, last.current + ms - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      setShown(value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return shown;
}
