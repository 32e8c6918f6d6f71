/** Rows: the components for each kind of item in a conversation. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import {
  AlarmClock, Ban, BookOpen, CheckCircle2, ChevronRight, CircleAlert, CirclePlay, CircleSlash2, Flag, Globe, Hourglass, PenLine, RotateCcw, StickyNote, Unplug, UserRound, Users, Wrench,
} from "lucide-react";
import { createContext, memo, type MouseEvent, type ReactNode, Suspense, useContext, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import type { Message } from "@/api/client";
import { inboxItemQuery, inboxListQuery } from "@/api/queries";
import { discardUnsent, type Draft, live, putBackUnsent, resendMessage, useLive } from "@/live";
import { callMs, type Event, type GivenAnswer, type ToolCall, type NodeSummary, type MessageRow, type TextRow, type SystemRow, type ToolsRow } from "@/live/log";
import { describeConsulted } from "@/lib/consulted";
import { cx } from "@/lib/cx";
import { type Ending, messageLabel } from "@/lib/endings";
import { fencedWords, withoutMarks, withoutOpenMarks } from "@/reading/fence";
import { duration, fullTime, plural, clockTime } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";
import { plainText } from "@/reading/plainText";
import { withoutFiles } from "@/lib/sources";
import { Avatar, Button } from "@/ui";
import type { Item } from "@/views/conversation/items";
import { Acts } from "@/views/conversation/Acts";
import { Literal } from "@/reading/Literal";
import { Markdown } from "@/reading/Markdown";
import { ActionsButton, HoverActions } from "@/views/conversation/MessageActions";
import { MessageAttachments } from "@/views/conversation/MessageAttachments";
import { wordsFor } from "@/views/composer/attachments";
import { QuestionCard } from "@/views/conversation/QuestionCard";
import { Doubts } from "@/parts/Doubts";
import { isLate } from "@/parts/unanswered";
import { waitJoint } from "@/lib/waitingReason";
import { editUnsent } from "@/views/composer/sending";
import { screenHref } from "@/lib/screens";
import { showToast } from "@/parts/toast";
import { Sources } from "@/parts/Sources";

interface Member {
  name: string;
  order: number;
  isCoordinator: boolean;
}
/** What all rows need to know about the team. */
interface TeamInfo {
  members: Map<string, Member>;
  team: string;
  nodes: Record<string, NodeSummary>;
  answers: Record<string, GivenAnswer>;
  expandTools: boolean;
}
export const TeamContext = createContext<TeamInfo>({ members: new Map(), team: "", nodes: {}, answers: {}, expandTools: false });

const Report = lazyChunk(() => import("@/views/research/Report"));
const FailureActions = lazyChunk(() => import("@/views/conversation/FailureActions"));
const WorkFiles = lazyChunk(async () => ({ default: (await import("@/views/conversation/FailureActions")).WorkFiles }));

export const senderName = (info: TeamInfo, id: string): string => (id === HUMAN ? "You" : id === SYSTEM ? "agiraph" : (info.members.get(id)?.name ?? "A former member"));

interface Props {
  item: Item;
  isHighlighted: boolean;
  onEarlier: () => void;
  onFold: (key: string, isOpen: boolean) => void;
  isLoading: boolean;
  agentId: string;
}

export const ItemView = memo(function ItemView({ item, isHighlighted, onEarlier, onFold, isLoading, agentId }: Props) {
  switch (item.kind) {
    case "day":
      return (
        <div className="flex items-center gap-4 px-4 py-3 text-xs font-medium text-ink-2">
          <span className="h-px flex-1 bg-line" />
          {item.label}
          <span className="h-px flex-1 bg-line" />
        </div>
      );
    case "new":
      return (
        <div className="flex items-center gap-3 px-4 py-1 text-xs font-semibold text-wait">
          New <span className="h-px flex-1 bg-wait-line" />
        </div>
      );
    case "earlier":
      return (
        <div className="flex justify-center py-2">
          <Button size="sm" onClick={onEarlier} disabled={isLoading}>
            {isLoading ? "Loading earlier messages…" : "Show earlier messages"}
          </Button>
        </div>
      );
    case "folded":
      return <FoldedLine item={item} onFold={onFold} agentId={agentId} />;
    case "unsent":
      return <UnsentItem item={item} />;
    case "row":
      switch (item.row.kind) {
        case "message": {
          const message = <MessageItem row={item.row} message={item.message} isContinued={item.isContinued} isHighlighted={isHighlighted} agentId={agentId} />;
          return item.edited === "no" ? message : <EditedMessage row={item.row} isOpen={item.edited === "open"} onFold={onFold}>{message}</EditedMessage>;
        }
        case "tools":
          return <ToolCalls row={item.row} />;
        case "text":
          return <AgentText row={item.row} />;
        case "system":
          return <SystemItem row={item.row} isHighlighted={isHighlighted} />;
      }
  }
});

function SenderAvatar({ id }: { id: string }) {
  const info = useContext(TeamContext);
  const member = info.members.get(id);
  if (id === HUMAN) return <span aria-hidden className="flex size-8 shrink-0 items-center justify-center rounded-md border border-line-2 text-ink-2"><UserRound className="size-4" /></span>;
  return <Avatar name={senderName(info, id)} order={member?.order ?? 9} isCoordinator={member?.isCoordinator ?? id === SYSTEM} />;
}

const UNKNOWN: Ending = { status: null, stopReason: null, hasDoubts: false };

function MessageItem({ row, message, isContinued, isHighlighted, agentId }: { row: MessageRow; message: Message | null; isContinued: boolean; isHighlighted: boolean; agentId: string }) {
  const info = useContext(TeamContext);
  // The toolbar is rendered when the pointer reaches the message. Most messages never need it.
  const [isHovered, setIsHovered] = useState(false);
  if (row.messageKind === "question" || row.messageKind === "approval") {
    return (
      <div aria-current={isHighlighted || undefined} className={cx("py-2 pr-4 pl-[60px] max-md:px-3", isHighlighted && "bg-wait-bg")}>
        <QuestionItem row={row} message={message} />
      </div>
    );
  }
  const isPeer = row.sender !== HUMAN && row.recipient !== HUMAN;
  const attachments = message?.attachments ?? [];
  const isFilesOnly = attachments.length > 0 && row.text === wordsFor(attachments);
  const actions = { row, author: `${senderName(info, row.sender)}, ${clockTime(row.at)}`, team: info.team, agentId };
  const label = messageLabel(row.messageKind, (row.nodeId ? info.nodes[row.nodeId] : undefined) ?? UNKNOWN);
  const title = message?.title ?? (isPeer && label.text && row.nodeId ? (info.nodes[row.nodeId]?.title ?? "") : "");
  return (
    <article aria-current={isHighlighted || undefined} onPointerMove={() => setIsHovered(true)} onPointerDown={() => setIsHovered(true)} className={cx("group/message relative flex gap-3 px-4 pr-10 max-md:pl-3", isContinued ? "py-0.5" : "pt-2 pb-1", isHighlighted && "bg-wait-bg")}>
      <div className="w-8 shrink-0">{!isContinued && <SenderAvatar id={row.sender} />}</div>
      <div className="min-w-0 flex-1">
        {!isContinued && (
          <div className="flex flex-wrap items-baseline gap-x-2 leading-5">
            <span dir="auto" className="font-semibold">{senderName(info, row.sender)}</span>
            {isPeer && <span className="text-xs text-ink-3">to {senderName(info, row.recipient)}</span>}
            {row.edits && <span className="text-xs text-ink-3">Edited</span>}
            {row.isGoal && <span className="text-xs text-ink-3">The goal</span>}
            {row.sender === HUMAN && row.recipient !== agentId && <OtherConversation agent={row.recipient} message={row.id} words="to" />}
            {message?.said_to && message.said_to !== agentId && <OtherConversation agent={message.said_to} message={row.id} words="written to" />}
            {label.text && <span dir="auto" className={cx("text-xs", TONE_STYLES[label.tone], label.tone !== "plain" && "font-medium")}>{label.text}</span>}
            <time className="text-xs whitespace-nowrap text-ink-3" dateTime={row.at} title={fullTime(row.at)}>
              {clockTime(row.at)}
            </time>
          </div>
        )}
        {title && label.text && <p dir="auto" className="font-medium">{title}</p>}
        <div className={cx(isPeer && "text-ink-2", isFilesOnly && "sr-only")}>
          <Words row={row} isPeer={isPeer} />
        </div>
        {attachments.length > 0 && <MessageAttachments files={attachments} sent={{ team: info.team, message: row.id }} />}
        {message && <Doubts of={message.doubts} team={info.team} />}
        {message && message.acts.length > 0 && <Acts message={message.id} acts={message.acts} agentId={agentId} />}
        {message && message.consulted.length > 0 && <Consulted calls={message.consulted} />}
        {message && <Sources of={withoutFiles(message.sources, attachments.map(({ name }) => name))} />}
        {row.messageKind === "failure" && row.recipient === HUMAN && row.nodeId && <WhatToDo node={row.nodeId} />}
        <ActionsButton {...actions} />
      </div>
      {isHovered && <HoverActions {...actions} />}
    </article>
  );
}

/** A message that another one took the place of: one line, which opens to it. */
function EditedMessage({ row, isOpen, onFold, children }: { row: MessageRow; isOpen: boolean; onFold: Props["onFold"]; children: ReactNode }) {
  return (
    <>
      <button type="button" aria-expanded={isOpen} onClick={() => onFold(row.key, !isOpen)} className="ml-[60px] flex min-h-7 items-center gap-1 rounded-sm text-xs text-ink-3 hover:text-ink max-md:ml-[56px] pointer-coarse:min-h-11">
        Edited; {isOpen ? "hide" : "show"} the {row.edits ? "version before" : "first version"}
        <ChevronRight className={cx("size-3.5 shrink-0 transition-transform", isOpen && "rotate-90")} aria-hidden />
      </button>
      {isOpen && <div className="text-ink-2">{children}</div>}
    </>
  );
}

/** The words of a message. The summary of a report has the marks of the report, and a link to it. */
function Words({ row, isPeer }: { row: MessageRow; isPeer: boolean }) {
  const { team } = useContext(TeamContext);
  const reports = inboxListQuery({ box: "inbox", team, kind: "report", open: false });
  const report = useInfiniteQuery({ ...reports, enabled: row.nodeId !== null && !isPeer, select: ({ pages }) => pages.flatMap((page) => page.items).find(({ message }) => message.node_id === row.nodeId)?.message.id }).data;
  const plain = <Markdown text={isPeer ? fencedWords(row.text) : row.text} breaks={row.messageKind !== "report" && row.messageKind !== "briefing"} />;
  if (!report || row.nodeId === null || row.sender === HUMAN) return plain;
  return (
    <>
      <Suspense fallback={plain}>
        <Report node={row.nodeId} text={row.text} isPart={row.id !== report} />
      </Suspense>
      {row.id !== report && (
        <Link to="/inbox/$item" params={{ item: report }} className="mt-1 inline-flex min-h-6 items-center text-sm underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-10">
          Open the report
        </Link>
      )}
    </>
  );
}

const ENDED_EARLY = new Set<NodeSummary["status"]>(["failed", "partial"]);

/** The files of a task that stopped early, and what the person can do about it or about one that has failed. */
function WhatToDo({ node }: { node: string }) {
  const info = useContext(TeamContext);
  const status = info.nodes[node]?.status ?? null;
  if (!ENDED_EARLY.has(status)) return null;
  return (
    <Suspense>
      {status === "partial" && <WorkFiles node={node} />}
      <div role="group" aria-label="What to do" className="mt-1 flex flex-wrap gap-2 empty:hidden">
        <FailureActions node={node} />
      </div>
    </Suspense>
  );
}

/** The other conversation that shows a message, with a link to the message there: a message with a mention is shown in two. */
function OtherConversation({ agent, message, words }: { agent: string; message: string; words: string }) {
  const info = useContext(TeamContext);
  return (
    <span className="text-xs text-ink-3">
      {words}{" "}
      <Link to="/t/$team/a/$agent" params={{ team: info.team, agent }} search={{ at: message }} dir="auto" className="underline">
        {senderName(info, agent)}
      </Link>
    </span>
  );
}

/** A question in the conversation. What "always" would allow stands in the inbox only. */
function QuestionItem({ row, message }: { row: MessageRow; message: Message | null }) {
  const info = useContext(TeamContext);
  const answer = info.answers[row.id] ?? null;
  // A question of a worker is shown here too, though it is no message of this conversation.
  const item = useQuery({ ...inboxItemQuery(row.id), enabled: message === null || answer === null }).data;
  // What cancelled work has asked is not in the inbox any more.
  const isGone = row.nodeId !== null && info.nodes[row.nodeId]?.status === "cancelled";
  return <QuestionCard id={row.id} text={row.text} at={row.at} kind={row.messageKind as "question" | "approval"} asker={senderName(info, row.sender)} message={message ?? item?.message ?? null} answered={answer} always={item?.always} isLate={isGone || (item !== undefined && isLate(item))} />;
}

/** What a reply has read before it was written, folded into one line. */
function Consulted({ calls }: { calls: readonly string[] }) {
  const info = useContext(TeamContext);
  const found = calls.map((call) => describeConsulted(call, (node) => info.nodes[node]?.title));
  return (
    <details className="group/read mt-1 text-xs text-ink-3">
      <summary className="flex min-h-6 max-w-full list-none items-center gap-1.5 pointer-coarse:min-h-10">
        <BookOpen className="size-3.5 shrink-0" aria-hidden />
        <span dir="ltr" className="truncate">
          Read: <Literal text={found.map(({ text }) => text).join(", ")} />
        </span>
        <ChevronRight className="size-3.5 shrink-0 transition-transform group-open/read:rotate-90" aria-hidden />
      </summary>
      <ul className="ml-5 list-disc">
        {found.map(({ text, node, item, file }, index) => {
          const href = node ? screenHref(info.team, "board", "", `?node=${node}`) : item ? `/inbox/${item}` : file ? screenHref(info.team, "files", file) : null;
          return (
            <li key={index} dir="ltr" className="literal">
              {href ? (
                <Link to={href as "/"} className="underline">
                  <Literal text={text} />
                </Link>
              ) : (
                <Literal text={text} />
              )}
            </li>
          );
        })}
      </ul>
    </details>
  );
}

const NOT_STORED = "The message is taken back on this page. Your browser did not store that: after a reload, it may be sent.";

function UnsentItem({ item }: { item: Extract<Item, { kind: "unsent" }> }) {
  const { unsent } = item;
  const isLive = useLive((state) => state.connection === "live");
  const discard = async () => {
    const result = await discardUnsent(unsent);
    // Not "it was not sent": the server may have it, if only its response was lost.
    if (result !== "on its way") showToast(result === "taken back" ? "The message is discarded. It will not be sent again." : NOT_STORED, () => void putBackUnsent(unsent));
  };
  const edit = async () => {
    if ((await editUnsent(unsent)) === "not stored") showToast(NOT_STORED);
  };
  const actions = (
    <>
      <Button size="sm" onClick={() => resendMessage(unsent)}>
        <RotateCcw className="size-3.5" /> Try again
      </Button>
      <Button size="sm" variant="ghost" onClick={() => void edit()}>
        Edit
      </Button>
      <Button size="sm" variant="ghost" onClick={() => void discard()}>
        Discard
      </Button>
    </>
  );
  return (
    <article className="flex gap-3 px-4 pt-2 pb-1 max-md:px-3">
      <SenderAvatar id={HUMAN} />
      <div className="min-w-0 flex-1">
        <div className={cx(unsent.state === "sending" && "opacity-60", unsent.state === "queued" && "text-ink-2")}>
          <div className="flex flex-wrap items-baseline gap-x-2 leading-5">
            <span className="font-semibold">You</span>
            <span className={cx("text-xs", unsent.state === "queued" ? "text-wait" : "text-ink-3")}>
              {unsent.state === "sending" && "Sending…"}
              {unsent.state === "queued" && (isLive ? "Queued: the server could not take it; it is sent again soon" : "Queued: sent when the connection is back")}
            </span>
          </div>
          <Markdown text={unsent.text} breaks />
          {unsent.attachments.length > 0 && <MessageAttachments files={unsent.attachments} />}
        </div>
        {unsent.state === "queued" && <div className="mt-1 flex flex-wrap items-center gap-2">{actions}</div>}
        {unsent.state === "refused" && (
          <div dir="auto" role="alert" className="mt-1 flex flex-wrap items-center gap-2 text-xs text-fail">
            <CircleAlert className="size-3.5" aria-hidden /> Not delivered. {unsent.reason}
            {actions}
          </div>
        )}
      </div>
    </article>
  );
}

/** The text that a model is writing. Only this component is rendered again for each delta. */
export function DraftItem({ threadId }: { threadId: string }) {
  const draft: Draft | undefined = useLive((state) => state.drafts[threadId]);
  const info = useContext(TeamContext);
  if (!draft) return null;
  const isReply = draft.lane === "reply";
  return (
    <article className="flex gap-3 px-4 pt-2 pb-1 max-md:px-3" aria-busy>
      <SenderAvatar id={draft.agentId} />
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-baseline gap-x-2 leading-5">
          <span dir="auto" className="font-semibold">{senderName(info, draft.agentId)}</span>
          <span className="flex items-center gap-1.5 text-xs text-work">
            <span className="pulse size-1.5 rounded-full bg-work-dot" aria-hidden /> {isReply ? "writing" : "thinking"}
          </span>
        </div>
        <div className={cx(!isReply && "text-ink-2")}>
          <Markdown text={withoutOpenMarks(draft.text)} breaks />
        </div>
      </div>
    </article>
  );
}

function AgentText({ row }: { row: TextRow }) {
  return (
    <div className="py-1 pr-10 pl-[60px] text-ink-2 max-md:px-3">
      <Markdown text={row.text} breaks />
    </div>
  );
}

const ICONS = { assigned: CirclePlay, started: CirclePlay, done: CheckCircle2, partial: CircleSlash2, failed: CircleAlert, cancelled: Ban, waiting: Hourglass, stage: Flag, person: UserRound, clock: AlarmClock, note: StickyNote, team: Users, model: Unplug, network: Globe };
const TONE_STYLES = { plain: "text-ink-3", work: "text-work", done: "text-done", wait: "text-wait", fail: "text-fail" };

/** The words of a notice, with a link to what changed. In a row that is too narrow, the title and the details become shorter first. */
function NoticeText({ row }: { row: SystemRow }) {
  const info = useContext(TeamContext);
  // The sentence goes on after the title, so a title that ends with a full stop loses it.
  const title = row.nodeId ? info.nodes[row.nodeId]?.title.replace(/(?<!\.)\.$/, "") || "its work" : "";
  const [before, after] = row.text.split("{node}");
  const namesTask = after !== undefined;
  const boardHref = row.nodeId ? screenHref(info.team, "board", "", `?node=${row.nodeId}`) : null;
  const changed = noticeLink(info.team, row.seq);
  const detail = plainText(row.detail.slice(0, 2_000));
  const joint = row.icon === "waiting" ? waitJoint(row.detail) : ": ";
  return (
    <>
      <span>{before}</span>
      {namesTask &&
        (boardHref ? (
          <Link to={boardHref as "/"} dir="auto" className="min-w-8 shrink-[1e6] font-medium text-ink hover:underline">
            {title}
          </Link>
        ) : (
          <span dir="auto" className="min-w-8 shrink-[1e6] font-medium text-ink">{title}</span>
        ))}
      {after && <span>{after}</span>}
      {row.detail && (
        <>
          {/* On its own, where a folded line keeps its space. */}
          <span className="text-ink-3">{joint}</span>
          <span dir="auto" className="shrink-[1e6] text-ink-3">{detail.length > 240 ? `${detail.slice(0, 240)}…` : detail}</span>
        </>
      )}{" "}
      {changed && (
        <Link to={changed.href as "/"} className="shrink-0 underline hover:text-ink">
          {changed.label}
        </Link>
      )}{" "}
      <time className="shrink-0 text-xs text-ink-3" dateTime={row.at} title={fullTime(row.at)}>
        {clockTime(row.at)}
      </time>
    </>
  );
}

function SystemItem({ row, isHighlighted }: { row: SystemRow; isHighlighted: boolean }) {
  const info = useContext(TeamContext);
  const Icon = ICONS[row.icon];
  // What the coordinator failed at arrives as a message, with the same buttons.
  const isWorkersFailure = row.nodeId !== null && (row.icon === "failed" || row.icon === "partial") && info.members.get(info.nodes[row.nodeId]?.agentId ?? "")?.isCoordinator === false;
  return (
    <div className={cx("flex items-start gap-3 py-1 pr-4 pl-4 text-sm text-ink-2 max-md:px-3", isHighlighted && "bg-wait-bg")}>
      <span className="flex h-5 w-8 shrink-0 items-center justify-center">
        <Icon className={cx("size-4", TONE_STYLES[row.tone])} aria-hidden />
      </span>
      <div className="min-w-0 flex-1">
        <NoticeText row={row} />
        {(isWorkersFailure || row.icon === "cancelled") && <WhatToDo node={row.nodeId!} />}
      </div>
    </div>
  );
}

/** Everything between two messages in one line: the newest notice, and how many steps it took. A click shows them below the line. */
function FoldedLine({ item, onFold, agentId }: { item: Extract<Item, { kind: "folded" }> } & Pick<Props, "onFold" | "agentId">) {
  const { notice, more, failed, isOpen } = item;
  const info = useContext(TeamContext);
  const isSteps = item.rows.some((row) => row.kind !== "system");
  const toggle = (event: MouseEvent<HTMLElement>) => {
    const log = event.currentTarget.closest("#thread");
    const top = event.currentTarget.getBoundingClientRect().top - (log?.getBoundingClientRect().top ?? 0);
    onFold(item.key, !isOpen);
    // What opens at the lower edge would be out of sight: move the line up.
    if (log && !isOpen) requestAnimationFrame(() => (log.scrollTop += Math.max(0, top - log.clientHeight * 0.5)));
  };
  const Icon = notice && !isOpen ? ICONS[notice.icon] : Wrench;
  return (
    <div className="flex items-center gap-3 py-0.5 pr-4 pl-4 text-sm text-ink-2 max-md:px-3">
      <span className="flex h-5 w-8 shrink-0 items-center justify-center">
        <Icon className={cx("size-4", notice && !isOpen ? TONE_STYLES[notice.tone] : "text-ink-3")} aria-hidden />
      </span>
      {notice && !isOpen && (
        // Each part is cut by itself: a link that its paragraph cuts off would still lie below the button.
        <p className="flex min-w-0 items-center *:overflow-hidden *:text-ellipsis *:whitespace-nowrap [&>.underline]:ms-1 [&>a]:leading-7 [&>a]:pointer-coarse:leading-[44px] [&>span:not([dir])]:whitespace-pre [&>time]:ms-1 [&>time]:max-md:hidden">
          <NoticeText row={notice} />
        </p>
      )}
      <button type="button" aria-expanded={isOpen} onClick={toggle} className={cx("flex min-h-7 min-w-0 items-center gap-1 rounded-sm text-xs text-ink-3 hover:text-ink pointer-coarse:min-h-11", notice && !isOpen && "shrink-0 max-md:max-w-1/2")}>
        <span className="tabular truncate">
          {isSteps && `${senderName(info, agentId)} · `}
          {more}
        </span>
        {!isOpen && failed > 0 && <span className="shrink-0 font-medium text-fail">{failed} failed</span>}
        <ChevronRight className={cx("size-3.5 shrink-0 transition-transform", isOpen && "rotate-90")} aria-hidden />
      </button>
    </div>
  );
}

function toolNames(calls: ToolCall[]): string {
  const counts = new Map<string, number>();
  for (const call of calls) counts.set(call.name, (counts.get(call.name) ?? 0) + 1);
  return [...counts].map(([name, n]) => (n > 1 ? `${name} ×${n}` : name)).join(", ");
}

function totalDurationMs(calls: ToolCall[]): number | null {
  const durations = calls.map(callMs);
  return durations.includes(null) ? null : durations.reduce<number>((sum, one) => sum + (one ?? 0), 0);
}

/** Return the label of a call without a result. */
const openCallLabel = (info: TeamInfo, nodeId: string): string => (info.nodes[nodeId]?.status === "waiting" ? "waiting" : "running");

function ToolCalls({ row }: { row: ToolsRow }) {
  const info = useContext(TeamContext);
  const [isOpen, setIsOpen] = useState<boolean | null>(null);
  const open = isOpen ?? info.expandTools;
  const failed = row.calls.filter((call) => call.failed).length;
  const repaired = row.calls.filter((call) => call.reading).length;
  const time = totalDurationMs(row.calls);
  return (
    <div className="py-0.5 pr-4 pl-[60px] max-md:px-3">
      <button type="button" aria-expanded={open} onClick={() => setIsOpen(!open)} className="flex min-h-7 max-w-full items-center gap-2 rounded-sm text-sm text-ink-2 hover:text-ink pointer-coarse:min-h-10">
        <Wrench className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="shrink-0 font-medium">{plural(row.calls.length, "tool call")}</span>
        <span className="truncate text-xs text-ink-3">{toolNames(row.calls)}</span>
        {failed > 0 && <span className="shrink-0 text-xs font-medium text-fail">{failed} failed</span>}
        {repaired > 0 && <span className="shrink-0 text-xs text-ink-3">{repaired} repaired</span>}
        <span className="tabular shrink-0 text-xs text-ink-3">{time === null ? openCallLabel(info, row.nodeId) : duration(time)}</span>
        <ChevronRight className={cx("size-3.5 shrink-0 transition-transform", open && "rotate-90")} aria-hidden />
      </button>
      {open && (
        <ul className="ml-1.5 border-l border-line pl-3">
          {row.calls.map((call, index) => (
            <ToolCallItem key={index} call={call} nodeId={row.nodeId} />
          ))}
        </ul>
      )}
    </div>
  );
}

/** Return the first line of the argument that says most about a call. */
export function mainArgument(call: ToolCall): string {
  const names = ["path", "command", "query", "url", "content", "task", "message", "question", "summary", "name"];
  const found = names.map((name) => call.arguments[name]).find((value) => typeof value === "string");
  return String(found ?? Object.values(call.arguments)[0] ?? "").split("\n")[0]!;
}

function ToolCallItem({ call, nodeId }: { call: ToolCall; nodeId: string }) {
  const info = useContext(TeamContext);
  const [open, setOpen] = useState(false);
  const isRunning = call.endedAt === null;
  return (
    <li>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex min-h-7 w-full items-center gap-2 rounded-sm px-1 text-left text-xs hover:bg-hover pointer-coarse:min-h-10">
        {call.failed && <CircleAlert className="size-3.5 shrink-0 text-fail" aria-label="Failed" />}
        <code dir="auto" className="shrink-0 font-medium">{call.name}</code>
        {call.reading && (
          <span title={call.reading} className="flex shrink-0 items-center gap-1 text-ink-3">
            <PenLine className="size-3.5" aria-hidden /> repaired
          </span>
        )}
        <code className="min-w-0 flex-1 truncate text-ink-3">{mainArgument(call)}</code>
        <span className="tabular shrink-0 text-ink-3">{isRunning ? openCallLabel(info, nodeId) : `${duration(callMs(call)!)}${call.waitedMs >= 1000 ? `, waited ${duration(call.waitedMs)}` : ""}`}</span>
        <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3 transition-transform", open && "rotate-90")} aria-hidden />
      </button>
      {open && (
        <div className="mb-2 grid gap-2 pl-1 text-xs">
          {call.reading && (
            <p className="text-ink-2">
              Repaired before the call: <Literal text={call.reading} />
            </p>
          )}
          <pre tabIndex={0} aria-label="Arguments" className="scroll max-h-60 rounded-sm bg-sunken p-2.5 whitespace-pre-wrap"><Literal text={JSON.stringify(call.arguments, null, 2)} /></pre>
          {!isRunning && (
            <pre tabIndex={0} aria-label="Output" className={cx("scroll max-h-80 rounded-sm p-2.5 whitespace-pre-wrap", call.failed ? "bg-fail-bg" : "bg-sunken")}><Literal text={withoutMarks(call.text) || "(no output)"} /></pre>
          )}
          <Link to={screenHref(info.team, "threads", call.threadId) as "/"} className="w-fit text-ink-2 underline">
            Show the full thread
          </Link>
        </div>
      )}
    </li>
  );
}

/** Where a notice leads. A notice about a task names the task itself; the others get a link to what changed. */
interface NoticeLink {
  label: string;
  href: string;
}

/** Return the link of the notice that an event made, or null. */
function linkOfEvent(team: string, event: Event): NoticeLink | null {
  switch (event.type) {
    case "agent.hired":
    case "agent.returned":
    case "agent.promoted":
      return { label: "Open", href: `/t/${team}/a/${event.data.agent_id}` };
    case "team.changed":
      return { label: "Settings", href: screenHref(team, "settings") };
    case "trigger.fired":
      return { label: "Triggers", href: screenHref(team, "triggers") };
    case "memory.written":
      return { label: "Memory", href: event.data.path ? screenHref(team, "memory", event.data.path) : screenHref(team, "memory", "", "?tab=memories") };
    case "stage.started":
    case "stage.ended":
    case "stage.reconvened":
      return { label: "Board", href: screenHref(team, "board") };
    default:
      return null;
  }
}

/** Return the link of the notice with this event number. The events of a loaded log have no gaps. */
function noticeLink(team: string, seq: number): NoticeLink | null {
  const log = live.store.getState().logs[team];
  const event = log?.events[seq - log.first];
  return event?.seq === seq ? linkOfEvent(team, event) : null;
}
