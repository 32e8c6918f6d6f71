/** Details: the panel beside a conversation: goal, plan and team for the coordinator; current task for a worker. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { type ReactNode, Suspense, useEffect, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { type Agent, errorMessage, type Schemas, type Team, type WorkNode } from "@/api/client";
import { boardQuery, nodeQuery, stagesQuery } from "@/api/queries";
import { useLive } from "@/live";
import { planProgress } from "@/views/conversation/jobs";
import { callMs, type ToolCall, type Row } from "@/live/log";
import { capitalize, compactNumber, duration, fullTime, money, plural } from "@/lib/format";
import { waitText } from "@/lib/waitingReason";
import { shownStatus, useIsStopped } from "@/parts/serverQueries";
import { Avatar, Chip, IconButton, StatusDot, Meter, type AgentStatus, STATUS_LABELS } from "@/ui";
import { screenHref } from "@/lib/screens";
import { isFinished } from "@/lib/endings";
import { useQuestionsInView, useTeamQuestions } from "@/parts/unanswered";
import { withoutEmphasis } from "@/reading/plainText";
import { displayStatusOf, elapsed, STATUS_STYLES, StatusChip } from "@/parts/taskStatus";

const FailureActions = lazyChunk(() => import("@/views/conversation/FailureActions"));
const TreeMap = lazyChunk(() => import("@/views/tree/TreeMap"));
const WindowUse = lazyChunk(() => import("@/parts/WindowUse"));
const EffortSetting = lazyChunk(() => import("@/views/models/EffortSetting"));

interface Props {
  team: Team;
  agent: Agent;
  agents: Agent[];
  isCoordinator: boolean;
}

export default function Details({ onClose, ...props }: Props & { onClose: () => void }) {
  return (
    <div className="flex flex-col gap-6 p-4">
      <div className="-mt-2 -mb-4 flex items-center justify-between">
        <span className="text-xs text-ink-3">Details</span>
        <IconButton label="Close the panel" onClick={onClose} className="-mr-2">
          <X className="size-4" />
        </IconButton>
      </div>
      {props.isCoordinator ? <TeamDetails {...props} /> : <WorkerDetails {...props} />}
      {props.agent.thread_id !== null && (
        <Suspense>
          <WindowUse thread={props.agent.thread_id} isOpen={props.agent.status === "working"} />
        </Suspense>
      )}
    </div>
  );
}

function Section({ title, note, children }: { title: string; note?: ReactNode; children: ReactNode }) {
  return (
    <section>
      <div className="mb-2 flex items-baseline justify-between gap-2">
        <h2 dir="auto" className="text-sm font-semibold">{title}</h2>
        {note && <span className="tabular text-xs text-ink-3">{note}</span>}
      </div>
      {children}
    </section>
  );
}

const UNFINISHED = new Set<WorkNode["status"]>(["pending", "assigned", "running", "waiting"]);

const MOST_LISTED = 6;

function TeamDetails({ team, agent, agents }: Props) {
  const board = useQuery(boardQuery(team.id));
  const stages = useQuery(stagesQuery(team.id));
  const nodes = (board.data ?? []).filter((node) => node.lane === "work");
  const open = nodes.filter((node) => UNFINISHED.has(node.status));
  const byJoinTime = agents.toSorted((a, b) => a.created_at.localeCompare(b.created_at));
  const isStopped = useIsStopped();
  const workers = byJoinTime.filter((one) => one.id !== agent.id && one.retired_at === null);
  return (
    <>
      <Section title="Goal" note={team.mode === "infinite" ? "runs until you stop it" : undefined}>
        <p dir="auto" className="line-clamp-6 text-sm whitespace-pre-wrap text-ink-2" title={team.goal}>
          {team.goal}
        </p>
      </Section>
      <Suspense>
        <TreeMap team={team.id} agent={agent.id} />
      </Suspense>
      <Section title="Plan" note={planProgress(nodes)}>
        {stages.data && stages.data.length > 0 ? (
          <ol className="relative ml-[5px] border-l border-line-2">
            {stages.data.map((stage) => (
              <StageItem key={stage.id} stage={stage} nodes={nodes} />
            ))}
          </ol>
        ) : nodes.length === 0 ? (
          <p className="text-sm text-ink-3">Nothing planned yet. The coordinator adds tasks as it plans.</p>
        ) : (
          <ul className="flex flex-col gap-1.5">
            {[...open, ...nodes.filter((node) => !UNFINISHED.has(node.status)).reverse()].slice(0, MOST_LISTED).map((node) => (
              <NodeItem key={node.id} node={node} team={team} />
            ))}
            {nodes.length > MOST_LISTED && (
              <li className="text-xs">
                <Link to={screenHref(team.id, "board") as "/"} className="text-ink-2 underline pointer-coarse:leading-10">
                  {nodes.length - MOST_LISTED} more on the board
                </Link>
              </li>
            )}
          </ul>
        )}
      </Section>
      <Section title="Team" note={workers.length > 0 ? plural(workers.length, "worker") : undefined}>
        {workers.length === 0 && <p className="text-sm text-ink-3">Only the coordinator so far. It hires the teammates it needs.</p>}
        <ul className="-mx-2">
          {workers.map((one) => (
            <li key={one.id}>
              <Link to="/t/$team/a/$agent" params={{ team: team.id, agent: one.id }} className="flex items-center gap-3 rounded-sm px-2 py-1.5 hover:bg-hover">
                <Avatar name={one.name} order={byJoinTime.indexOf(one)} className="size-7" />
                <span className="min-w-0 flex-1">
                  <span dir="auto" className="flex items-center gap-2 text-sm font-medium">
                    {capitalize(one.name)} <StatusDot status={shownStatus(one.status as AgentStatus, isStopped)} />
                  </span>
                  <span dir="auto" className="block truncate text-xs text-ink-3">{(one.status !== "idle" && one.node_title) || STATUS_LABELS[shownStatus(one.status as AgentStatus, isStopped)]}</span>
                </span>
              </Link>
            </li>
          ))}
        </ul>
      </Section>
      <AgentFacts agent={agent} />
    </>
  );
}

function NodeItem({ node, team }: { node: WorkNode; team: Team }) {
  const style = STATUS_STYLES[displayStatusOf(node, false)];
  return (
    <li dir="auto" className="flex items-center gap-2">
      <Chip tone={style.tone} className="min-w-[72px] justify-center">
        {style.label}
      </Chip>
      <Link dir="auto" to={screenHref(team.id, "board", "", `?node=${node.id}`) as "/"} className="flex min-w-0 flex-1 hover:underline">
        <span dir="auto" className="min-w-0 flex-1 truncate text-sm">{node.title}</span>
      </Link>
    </li>
  );
}

const STAGE_ENDS: Record<Schemas["StageView"]["status"], string> = { running: "Running", met: "Done", broken: "Not completed", timed_out: "Ran out of time", reconvened: "Reviewed" };

function StageItem({ stage, nodes }: { stage: Schemas["StageView"]; nodes: WorkNode[] }) {
  const own = nodes.filter((node) => stage.nodes.includes(node.id));
  const done = own.filter((node) => !UNFINISHED.has(node.status)).length;
  const isOver = stage.ended_at !== null;
  return (
    <li className="relative pb-4 pl-4 last:pb-0">
      <span aria-hidden className={`absolute top-1 -left-[6px] size-[11px] rounded-full border-2 bg-canvas ${!isOver ? "border-work-dot" : stage.status === "met" || stage.status === "reconvened" ? "border-done-dot bg-done-dot" : "border-ink-3 bg-ink-3"}`} />
      <p dir="auto" className="text-sm leading-5 font-medium">{capitalize(stage.name)}</p>
      <p className="mb-1 text-xs text-ink-3">{isOver ? STAGE_ENDS[stage.status] : `${done} of ${own.length} done`}</p>
      {!isOver && <Meter value={done} max={own.length} tone="work" label={`Stage ${stage.name}`} />}
    </li>
  );
}

function useClock(active: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Return the newest calls, newest first. It reads from the end, because a conversation may have thousands of rows. */
function newestCalls(rows: readonly Row[], limit: number): ToolCall[] {
  const found: ToolCall[] = [];
  for (let at = rows.length - 1; at >= 0 && found.length < limit; at--) {
    const row = rows[at]!;
    if (row.kind === "tools") found.push(...row.calls.toReversed());
  }
  return found.slice(0, limit);
}

function WorkerDetails({ team, agent }: Props) {
  const node = useQuery({ ...nodeQuery(agent.node_id ?? ""), enabled: agent.node_id !== null });
  const calls = useLive((state) => state.logs[team.id]?.rowsByAgent[agent.id]);
  const inView = useQuestionsInView((state) => state.ids);
  const isAsked = useTeamQuestions(team.id).some((item) => item.message.sender === agent.id && inView.has(item.message.id));
  const recent = newestCalls(calls ?? [], 6);
  const now = useClock(node.data?.status === "running");
  const files = node.data?.files.filter((file) => file.kind === "file" && !file.path.split("/").at(-1)!.startsWith("_")) ?? [];
  return (
    <>
      <Section title={node.data && UNFINISHED.has(node.data.status) ? "Current work" : "Last work"} note={node.data && node.data.attempt > 1 ? `attempt ${node.data.attempt}` : undefined}>
        {agent.node_id === null && <p className="text-sm text-ink-3">Nothing yet. The coordinator assigns tasks as it plans.</p>}
        {node.data && (
          <div className="rounded-md border border-line bg-surface p-3">
            <div className="mb-1 flex items-start gap-2">
              <p dir="auto" className="min-w-0 flex-1 text-sm font-medium">{node.data.title}</p>
              <StatusChip status={displayStatusOf(node.data, agent.status === "waiting_for_you")} />
            </div>
            <p dir="auto" className="line-clamp-6 text-sm whitespace-pre-wrap text-ink-2">{node.data.task}</p>
            {agent.waiting_reason && !isAsked && <p dir="auto" className="mt-2 text-xs text-wait">{capitalize(withoutEmphasis(waitText(agent.waiting_reason)))}</p>}
            <p className="tabular mt-2 flex justify-between text-xs text-ink-3">
              <span title="Time at work, without waits">{node.data.started_at ? elapsed(node.data, now) : "not started"}</span>
              <span>
                {compactNumber(node.data.cost.tokens)} tokens · {money(node.data.cost.usd)}
              </span>
            </p>
            {isFinished(node.data.status) && (
              <div className="mt-2 flex flex-wrap gap-2 empty:hidden">
                <Suspense>
                  <FailureActions node={node.data.id} />
                </Suspense>
              </div>
            )}
          </div>
        )}
        {node.isError && <p className="text-xs text-fail">{errorMessage(node.error)}</p>}
      </Section>
      {recent.length > 0 && (
        <Section title="Latest calls">
          <ul className="flex flex-col gap-1 text-xs">
            {recent.map((call, index) => (
              <li key={index} className="flex items-center gap-2">
                <span className={`size-1.5 shrink-0 rounded-full ${call.endedAt === null ? "pulse bg-work-dot" : call.failed ? "bg-fail-dot" : "bg-done-dot"}`} aria-hidden />
                <code dir="auto" className="min-w-0 flex-1 truncate">{call.name}</code>
                <span className="tabular text-ink-3">{call.endedAt === null ? (node.data?.status === "waiting" ? "waiting" : "running") : call.failed ? "failed" : duration(callMs(call)!)}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {files.length > 0 && (
        <Section title="Files" note={files.length}>
          <ul className="flex flex-col gap-1">
            {files.slice(0, 8).map((file) => (
              <li key={file.path} className="truncate text-sm" title={`${file.path}, ${fullTime(file.modified)}`}>
                <Link to={screenHref(team.id, "files", file.path) as "/"} className="hover:underline">
                  {file.path.split("/").slice(2).join("/")}
                </Link>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Suspense>
        <TreeMap team={team.id} agent={agent.id} />
      </Suspense>
      <AgentFacts agent={agent} />
    </>
  );
}

function AgentFacts({ agent }: { agent: Agent }) {
  return (
    <Section title="Agent">
      <dl className="grid grid-cols-[80px_1fr] items-baseline gap-y-1 text-sm text-ink-2">
        <dt className="text-ink-3">Role</dt>
        <dd className="truncate">{agent.role}</dd>
        <dt className="text-ink-3">{agent.kind === "cli" ? "Program" : "Model"}</dt>
        <dd className="truncate" title={agent.command ?? agent.model}>
          {agent.command ?? agent.model}
        </dd>
        {agent.kind !== "cli" && (
          <>
            <dt className="text-ink-3">Effort</dt>
            <dd>
              <Suspense fallback={<span className="block h-7" />}>
                <EffortSetting value={agent.effort} unset="Same as the team" agent={agent.id} />
              </Suspense>
            </dd>
          </>
        )}
        <dt className="text-ink-3">Since</dt>
        <dd>{fullTime(agent.created_at)}</dd>
      </dl>
    </Section>
  );
}
