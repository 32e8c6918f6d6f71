/** TaskDetail: everything about one task: request, dependencies, result, files, cost and actions. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ExternalLink, FileText, Link2, MessageCircle, ScrollText, Square, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { inboxItemQuery, nodeQuery, queryClient } from "@/api/queries";
import { copyText } from "@/lib/clipboard";
import { searchedWords, showWords } from "@/reading/foundWords";
import { partialText } from "@/lib/endings";
import { waitingReason } from "@/lib/waitingReason";
import { capitalize, compactNumber, duration, fullTime, money, plural, fileSize } from "@/lib/format";
import { isAskedBy, isLate, useOpenItems } from "@/parts/unanswered";
import { Markdown } from "@/reading/Markdown";
import { requestedBy } from "@/lib/participants";
import { QuestionCard } from "@/views/conversation/QuestionCard";
import FailureActions from "@/views/conversation/FailureActions";
import { Button, Chip, IconButton, Loading, ErrorPanel } from "@/ui";
import { buttonStyle } from "@/ui/button";
import { screenHref } from "@/lib/screens";
import type { CardData } from "@/views/board/Card";
import { ConfirmStop } from "@/parts/ConfirmStop";
import { HELD_BY } from "@/parts/teamState";
import { canExtend, ExtendButton } from "@/parts/Extend";
import { Doubts } from "@/parts/Doubts";
import { useNow } from "@/parts/RelativeTime";
import { showToast, showError } from "@/parts/toast";
import EffortSetting from "@/views/models/EffortSetting";
import { EFFORTS } from "@/parts/teamFields";
import { isFinished } from "@/lib/endings";
import { cancelledText, elapsed, STATUS_STYLES, displayStatusOf, StatusChip, stopReasonText } from "@/parts/taskStatus";

type NodeDetail = Schemas["NodeDetail"];
const UNMET_POLICIES: Record<NodeDetail["if_unmet"], string> = {
  fail: "If something it needs fails, it fails too.",
  skip: "If something it needs fails, it is skipped.",
  go_on: "If something it needs fails, it starts anyway.",
  ask: "If something it needs fails, its creator is asked.",
};

interface Props {
  id: string;
  team: Team;
  cards: Map<string, CardData>;
  stages: Schemas["StageView"][];
  onOpen: (id: string) => void;
  onClose: () => void;
}

export function TaskDetail({ id, team, cards, stages, onOpen, onClose }: Props) {
  const query = useQuery(nodeQuery(id));
  const node = query.data;
  const heading = useRef<HTMLHeadingElement>(null);
  // Move the focus into the panel, so that a screen reader reads the task that was opened.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [id]);
  const about = useRef<HTMLDivElement>(null);
  const isLoaded = node !== undefined;
  useEffect(() => {
    if (isLoaded) showWords(() => about.current, searchedWords());
  }, [id, isLoaded]);
  const title = node?.title ?? cards.get(id)?.node.title ?? "Task";
  return (
    <>
      <div className="flex shrink-0 items-start gap-2 border-b border-line py-3 pr-2 pl-5">
        <h2 dir="auto" ref={heading} tabIndex={-1} className="min-w-0 flex-1 py-1 text-md leading-5 font-semibold">
          {title}
        </h2>
        <IconButton label="Copy a link to this task" onClick={() => void copyText(location.href).then(() => showToast("The link is copied."))}>
          <Link2 className="size-4" />
        </IconButton>
        <IconButton label="Close" keys="Esc" onClick={onClose}>
          <X className="size-4" />
        </IconButton>
      </div>
      <div ref={about} className="scroll min-h-0 flex-1 px-5 pt-4 pb-8" tabIndex={0} role="region" aria-label="About this task">
        {query.isPending ? (
          <Loading label="Loading the task" className="p-0" />
        ) : !node ? (
          <ErrorPanel title="This task could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
        ) : (
          <TaskBody node={node} team={team} cards={cards} stage={stages.find((stage) => stage.id === node.stage_id)} onOpen={onOpen} />
        )}
      </div>
    </>
  );
}

function TaskBody({ node, team, cards, stage, onOpen }: { node: NodeDetail; team: Team; cards: Map<string, CardData>; stage: Schemas["StageView"] | undefined; onOpen: (id: string) => void }) {
  const asked = useOpenItems(team.id).find((item) => isAskedBy(item, node.id));
  // The card shows all words.
  const question = useQuery({ ...inboxItemQuery(asked?.message.id ?? ""), enabled: asked !== undefined }).data;
  const displayStatus = displayStatusOf(node, asked !== undefined);
  const now = useNow(1000, !isFinished(node.status));
  const threadHref = node.thread_id ? screenHref(team.id, "threads", node.thread_id) : null;
  return (
    <div className="space-y-5 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <StatusChip status={displayStatus} />
        {stage && <Chip>{capitalize(stage.name)}</Chip>}
        {node.stalled_at && !isFinished(node.status) && <Chip tone="wait">No progress for a while</Chip>}
        <div className="ml-auto flex flex-wrap justify-end gap-2">
          {node.assignee_id && (
            <Link to="/t/$team/a/$agent" params={{ team: team.id, agent: node.assignee_id }} className={buttonStyle({ size: "sm" })}>
              <MessageCircle className="size-3.5" aria-hidden /> Talk to <span dir="auto">{capitalize(node.assignee ?? node.assignee_id)}</span>
            </Link>
          )}
          {isFinished(node.status) ? <FailureActions node={node.id} /> : canExtend(node) && <ExtendButton node={node} />}
          <TaskActions node={node} cards={cards} />
        </div>
      </div>

      {asked && question && (question.message.kind === "question" || question.message.kind === "approval") && (
        <QuestionCard key={question.message.id} id={question.message.id} text={question.message.text} at={question.message.created_at} kind={question.message.kind} asker={capitalize(question.message.sender_name)} message={question.message} answered={null} always={question.always} isLate={isLate(question)} />
      )}
      {node.status === "cancelled" && <p className="text-ink-2">{cancelledText(node)}</p>}
      {!asked && !node.waiting_reason && node.held_by && <Note title="Not started">{HELD_BY[node.held_by]}</Note>}
      {!asked && node.waiting_reason && <Note title={node.status === "pending" ? "Why it is not assigned" : "Waits"}>{waitingReason(node.waiting_reason)}</Note>}
      {node.status === "partial" && (
        <Note title={partialText(node.stop_reason)}>It was stopped before it was done. The partial result is below. Extend its limits to continue it.</Note>
      )}
      {node.status === "failed" && (
        <div role="note" className="rounded-md border border-fail/30 bg-fail-bg p-3">
          <p className="font-semibold text-fail">{stopReasonText(node.stop_reason) || "The task failed"}</p>
          {node.result && (node.stop_reason === "not_reached" ? <Markdown text={node.result} /> : <p dir="auto" className="mt-1 whitespace-pre-wrap text-ink-2">{node.result}</p>)}
        </div>
      )}

      <dl className="grid grid-cols-[104px_1fr] gap-x-3 gap-y-1.5">
        <Fact name="Agent">
          {node.assignee_id ? (
            <Link dir="auto" to="/t/$team/a/$agent" params={{ team: team.id, agent: node.assignee_id }} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              {capitalize(node.assignee ?? node.assignee_id)}
            </Link>
          ) : (
            isFinished(node.status) || node.held_by ? "Nobody" : "Nobody yet"
          )}
        </Fact>
        <Fact name="Requested by">{requestedBy(node)}</Fact>
        <Fact name="Time">
          {node.started_at ? `${elapsed(node, now)} at work` : "Not started"}
          <span className="text-ink-3">
            {node.started_at && ", without waits"} · created {fullTime(node.created_at)}
          </span>
        </Fact>
        {node.attempt > 0 && <Fact name="Attempts">{node.attempt}</Fact>}
        <Fact name="Cost">
          <Link to={screenHref(team.id, "cost", "", `?node=${node.id}`) as "/"} className="tabular underline decoration-line-2 underline-offset-2 hover:decoration-ink">
            {money(node.cost.usd)}
          </Link>
          <span className="tabular text-ink-3">
            {" "}
            · {plural(node.cost.calls, "model call")} · {compactNumber(node.cost.tokens)} tokens, including subtasks
          </span>
        </Fact>
        <Fact name="Limits">{budgetText(node.budget)}</Fact>
        {node.status === "completed" || node.status === "cancelled" ? (
          node.effort && <Fact name="Effort">{EFFORTS.find(([effort]) => effort === node.effort)?.[1]}</Fact>
        ) : (
          <Fact name="Effort">
            <EffortSetting value={node.effort} unset="Same as its agent" node={node.id} />
          </Fact>
        )}
        {threadHref && (
          <Fact name="Thread">
            <Link to={threadHref as "/"} className="inline-flex min-h-6 items-center gap-1 underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              <ScrollText className="size-3.5" aria-hidden /> All steps
            </Link>
          </Fact>
        )}
      </dl>

      <Section title="Request">
        <Markdown text={node.task} />
      </Section>
      {node.acceptance.length > 0 && (
        <Section title="Done when">
          <ul className="list-disc space-y-1 pl-5 marker:text-ink-3">
            {node.acceptance.map((line, at) => (
              <li key={at}>
                <Markdown text={line} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {node.result && node.status !== "failed" && (
        <Section title={node.status === "partial" ? "Result so far" : "Result"}>
          <Markdown text={node.result} />
          {node.status !== "cancelled" && node.stop_reason && stopReasonText(node.stop_reason) && <p className="mt-1 text-xs text-ink-3">{stopReasonText(node.stop_reason)}</p>}
        </Section>
      )}
      <Doubts of={node.doubts} team={team.id} />
      {node.checkpoint && !isFinished(node.status) && (
        <Section title="Last checkpoint">
          <Markdown text={node.checkpoint} />
        </Section>
      )}
      {(node.depends_on.length > 0 || node.children.length > 0 || node.parent_id) && (
        <Section title="Related tasks">
          {node.parent_id && <TaskLinks title="Parent task" ids={[node.parent_id]} cards={cards} onOpen={onOpen} />}
          {node.depends_on.length > 0 && (
            <>
              <TaskLinks title="Depends on" ids={node.depends_on} cards={cards} onOpen={onOpen} />
              <p className="mt-0.5 text-xs text-ink-3">{UNMET_POLICIES[node.if_unmet]}</p>
            </>
          )}
          {node.children.length > 0 && <TaskLinks title="Subtasks" ids={node.children} cards={cards} onOpen={onOpen} />}
        </Section>
      )}
      {Object.keys(node.refs).length > 0 && (
        <Section title="Inputs">
          <ul className="space-y-1">
            {Object.entries(node.refs).map(([name, path]) => (
              <li key={name} className="flex items-baseline gap-2">
                <span className="shrink-0 font-medium">{name}</span>
                <FileLink team={team.id} path={path} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Files node={node} team={team} />
    </div>
  );
}

function TaskActions({ node, cards }: { node: NodeDetail; cards: Map<string, CardData> }) {
  const open = node.children.filter((id) => !isFinished(cards.get(id)?.node.status ?? "completed")).length;
  const [isConfirming, setIsConfirming] = useState(false);
  const refresh = () => {
    void queryClient.invalidateQueries({ queryKey: ["node", node.id] });
    void queryClient.invalidateQueries({ queryKey: ["whole-board", node.team_id] });
  };
  const stop = useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/cancel", { params: { path: { node: node.id } } })),
    onSuccess: () => {
      setIsConfirming(false);
      refresh();
      showToast(node.status === "running" ? "The task stops at its next step." : "The task is stopped.");
    },
    onError: (error) => showError("The task could not be stopped", error),
  });
  if (isFinished(node.status)) return null;
  return (
    <>
      <Button size="sm" onClick={() => setIsConfirming(true)}>
        <Square className="size-3.5" aria-hidden /> Stop
      </Button>
      {isConfirming && (
        <ConfirmStop title="Stop this task?" isPending={stop.isPending} onStop={() => stop.mutate()} onClose={() => setIsConfirming(false)}>
          <p>
            <b dir="auto" className="font-semibold">
              {node.title}
            </b>
            {open > 0 ? ` and ${plural(open, "open subtask")} stop` : " stops"} at the next step.
          </p>
        </ConfirmStop>
      )}
    </>
  );
}

function TaskLinks({ title, ids, cards, onOpen }: { title: string; ids: string[]; cards: Map<string, CardData>; onOpen: (id: string) => void }) {
  const [showAll, setShowAll] = useState(false);
  const visible = showAll ? ids : ids.slice(0, 8);
  return (
    <div className="mt-1.5">
      <p dir="auto" className="text-xs text-ink-3">{title}</p>
      <ul>
        {visible.map((id) => {
          const card = cards.get(id);
          const Icon = STATUS_STYLES[card?.displayStatus ?? "pending"].icon;
          return (
            <li key={id}>
              <button type="button" onClick={() => onOpen(id)} className="-mx-1.5 flex min-h-7 w-[calc(100%+12px)] items-center gap-2 rounded-sm px-1.5 text-left hover:bg-hover pointer-coarse:min-h-10">
                <Icon className="size-3.5 shrink-0 text-ink-3" aria-hidden />
                <span dir="auto" className="min-w-0 flex-1 truncate">{card?.node.title ?? id}</span>
                {card && <span className="text-xs text-ink-3">{STATUS_STYLES[card.displayStatus].label}</span>}
              </button>
            </li>
          );
        })}
      </ul>
      {ids.length > visible.length && (
        <Button size="sm" variant="ghost" onClick={() => setShowAll(true)}>
          {ids.length - visible.length} more
        </Button>
      )}
    </div>
  );
}

function Files({ node, team }: { node: NodeDetail; team: Team }) {
  const files = node.files.filter((file) => file.kind === "file");
  const folder = `nodes/${node.id}/`;
  const groups = [
    ["Published", files.filter((file) => file.path.startsWith(`${folder}published/`))],
    ["Scratch", files.filter((file) => !file.path.startsWith(`${folder}published/`))],
  ] as const;
  if (files.length === 0) return null;
  return (
    <Section title="Files">
      {groups.map(([title, group]) =>
        group.length === 0 ? null : (
          <div key={title} className="mt-1.5">
            <p dir="auto" className="text-xs text-ink-3">{title}</p>
            <ul>
              {group.map((file) => (
                <li key={file.path} className="flex items-center gap-2">
                  <FileLink team={team.id} path={file.path} label={file.path.slice(folder.length).replace(/^(published|scratch)\//, "")} />
                  <span className="tabular ml-auto text-xs text-ink-3">{fileSize(file.size)}</span>
                </li>
              ))}
            </ul>
          </div>
        ),
      )}
    </Section>
  );
}

function FileLink({ team, path, label = path }: { team: string; path: string; label?: string }) {
  if (/^https?:/.test(path)) {
    return (
      <span className="flex min-h-7 min-w-0 items-center gap-1.5">
        <ExternalLink className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="min-w-0 truncate">{label}</span>
      </span>
    );
  }
  return (
    <Link to={screenHref(team, "files", path) as "/"} title={path} className="flex min-h-7 min-w-0 items-center gap-1.5 hover:underline pointer-coarse:min-h-10">
      <FileText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
      <span className="min-w-0 truncate">{label}</span>
    </Link>
  );
}

function budgetText(budget: Schemas["Budget"]): string {
  const parts = [
    budget.turns !== undefined && plural(budget.turns, "turn"),
    budget.usd != null && money(budget.usd),
    budget.tokens != null && `${compactNumber(budget.tokens)} tokens`,
    budget.model_calls != null && plural(budget.model_calls, "model call"),
    budget.seconds != null && duration(1000 * budget.seconds),
  ].filter(Boolean);
  return parts.join(" · ") || "The limits of its parent task";
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd dir="auto" className="min-w-0">{children}</dd>
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 dir="auto" className="mb-1 text-xs font-semibold text-ink-2">{title}</h3>
      {children}
    </section>
  );
}

function Note({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="rounded-md bg-sunken p-3">
      <p dir="auto" className="text-xs font-semibold text-ink-2">{title}</p>
      <p dir="auto" className="mt-0.5">{children}</p>
    </div>
  );
}
