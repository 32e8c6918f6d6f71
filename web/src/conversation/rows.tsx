/** Rows: one line of a thread each; names, cards, tool calls and system lines share one edge. */
import { Link } from "@tanstack/react-router";
import {
  AlarmClock, Ban, Check, CheckCircle2, ChevronRight, CircleAlert, CirclePlay, Copy, FileText, Flag, Hourglass, Pencil, RotateCcw, StickyNote, Unplug, UserRound, Users, Wrench,
} from "lucide-react";
import { createContext, memo, useContext, useState } from "react";
import type { Message } from "@/api/client";
import { type Draft, sayAgain, takeBack, useLive } from "@/live";
import type { Answered, Call, KnownNode, MessageRow, SaidRow, SystemRow, ToolsRow } from "@/live/log";
import { copyText } from "@/lib/clipboard";
import { cx } from "@/lib/cx";
import { duration, fullTime, plural, timeOf } from "@/lib/format";
import { Avatar, Button } from "@/ui";
import { useComposer } from "@/conversation/composerState";
import type { Item } from "@/conversation/items";
import { Literal } from "@/conversation/Literal";
import { Markdown } from "@/conversation/Markdown";
import { QuestionCard } from "@/conversation/QuestionCard";
import { screenHref } from "@/views";

interface Person {
  name: string;
  order: number;
  isCoordinator: boolean;
}
interface People {
  who: Map<string, Person>;
  team: string;
  titles: Record<string, KnownNode>;
  answers: Record<string, Answered>;
  openTools: boolean;
}
export const PeopleContext = createContext<People>({ who: new Map(), team: "", titles: {}, answers: {}, openTools: false });

const nameOf = (people: People, id: string): string => (id === "human" ? "You" : id === "system" ? "agiraph" : (people.who.get(id)?.name ?? "A former member"));

interface Props {
  item: Item;
  isMarked: boolean;
  onEarlier: () => void;
  isLoading: boolean;
  agentId: string;
}

export const RowView = memo(function RowView({ item, isMarked, onEarlier, isLoading, agentId }: Props) {
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
    case "unsent":
      return <UnsentRow item={item} />;
    case "row":
      switch (item.row.kind) {
        case "message":
          return <MessageView row={item.row} message={item.message} isContinued={item.isContinued} isMarked={isMarked} agentId={agentId} />;
        case "tools":
          return <Tools row={item.row} />;
        case "said":
          return <Said row={item.row} />;
        case "system":
          return <SystemLine row={item.row} isMarked={isMarked} />;
      }
  }
});

function Face({ id }: { id: string }) {
  const people = useContext(PeopleContext);
  const person = people.who.get(id);
  if (id === "human") return <span aria-hidden className="flex size-8 shrink-0 items-center justify-center rounded-md border border-line-2 text-ink-2"><UserRound className="size-4" /></span>;
  return <Avatar name={nameOf(people, id)} order={person?.order ?? 9} isCoordinator={person?.isCoordinator ?? id === "system"} />;
}

const KINDS: Partial<Record<MessageRow["messageKind"], string>> = { result: "Result", report: "Report", briefing: "Briefing", failure: "Failure", suggestion: "Suggestion", nudge: "Nudge", notice: "Notice" };

function MessageView({ row, message, isContinued, isMarked, agentId }: { row: MessageRow; message: Message | null; isContinued: boolean; isMarked: boolean; agentId: string }) {
  const people = useContext(PeopleContext);
  // What can be done with a message is made when somebody comes near it: most are only read.
  const [isNear, setNear] = useState(false);
  if (row.messageKind === "question" || row.messageKind === "approval") {
    return (
      <div className={cx("py-2 pr-4 pl-[60px] max-md:px-3", isMarked && "bg-wait-bg")}>
        <QuestionCard id={row.id} text={row.text} at={row.at} kind={row.messageKind} asker={nameOf(people, row.sender)} message={message} answered={people.answers[row.id] ?? null} />
      </div>
    );
  }
  const isPeer = row.sender !== "human" && row.recipient !== "human";
  const kind = KINDS[row.messageKind];
  const title = message?.title ?? (isPeer && kind && row.nodeId ? (people.titles[row.nodeId]?.title ?? "") : "");
  return (
    <article onPointerMove={() => setNear(true)} onPointerDown={() => setNear(true)} onFocus={() => setNear(true)} className={cx("group/message relative flex gap-3 px-4 pr-10 max-md:px-3", isContinued ? "py-0.5" : "pt-2 pb-1", isMarked && "bg-wait-bg")}>
      <div className="w-8 shrink-0">{!isContinued && <Face id={row.sender} />}</div>
      <div className="min-w-0 flex-1">
        {!isContinued && (
          <div className="flex items-baseline gap-2 leading-5">
            <span className="font-semibold">{nameOf(people, row.sender)}</span>
            {isPeer && <span className="text-xs text-ink-3">to {nameOf(people, row.recipient)}</span>}
            {row.sender === "human" && row.recipient !== agentId && <span className="text-xs text-ink-3">to {nameOf(people, row.recipient)}</span>}
            {kind && <span className={cx("text-xs", row.messageKind === "failure" ? "font-medium text-fail" : "text-ink-3")}>{kind}</span>}
            <time className="text-xs text-ink-3" dateTime={row.at} title={fullTime(row.at)}>
              {timeOf(row.at)}
            </time>
          </div>
        )}
        {title && kind && <p className="font-medium">{title}</p>}
        <div className={cx(isPeer && "text-ink-2")}>
          <Markdown text={isPeer ? handedIn(row.text) : row.text} breaks={row.messageKind !== "report" && row.messageKind !== "briefing"} />
        </div>
        {message && message.attachments.length > 0 && <Attachments of={message} />}
      </div>
      {isNear && <Actions row={row} agentId={agentId} />}
    </article>
  );
}

/** What was handed in, without the frame that is written for the agent who reads it. */
const handedIn = (text: string): string => /--- RESULT ---\n([\s\S]*?)\n?--- END OF RESULT ---/.exec(text)?.[1] ?? text;

function Actions({ row, agentId }: { row: MessageRow; agentId: string }) {
  const [copied, setCopied] = useState(false);
  const begin = useComposer((state) => state.begin);
  const isMine = row.sender === "human";
  const quick = "flex size-7 items-center justify-center rounded-sm text-ink-3 hover:bg-hover hover:text-ink";
  return (
    <div className="absolute -top-1 right-3 hidden rounded-sm border border-line bg-surface shadow-low group-focus-within/message:flex group-hover/message:flex">
      <button type="button" className={quick} aria-label={copied ? "Copied" : "Copy message"} title="Copy" onClick={() => void copyText(row.text).then(() => setCopied(true))}>
        {copied ? <Check className="size-3.5" /> : <Copy className="size-3.5" />}
      </button>
      {isMine && (
        <button type="button" className={quick} aria-label="Edit and send again" title="Edit and send again" onClick={() => begin(agentId, row.text)}>
          <Pencil className="size-3.5" />
        </button>
      )}
    </div>
  );
}

function Attachments({ of }: { of: Message }) {
  return (
    <ul className="mt-1 flex flex-wrap gap-2">
      {of.attachments.map((one, index) => (
        <li key={index} className="flex items-center gap-2 rounded-sm border border-line bg-surface px-2 py-1 text-xs">
          <FileText className="size-3.5 text-ink-3" aria-hidden />
          <a download={one.name} href={`data:application/octet-stream;base64,${one.data}`} className="hover:underline">
            {one.name}
          </a>
        </li>
      ))}
    </ul>
  );
}

function UnsentRow({ item }: { item: Extract<Item, { kind: "unsent" }> }) {
  const { unsent } = item;
  const begin = useComposer((state) => state.begin);
  const isFaint = unsent.state !== "refused";
  return (
    <article className="flex gap-3 px-4 pt-2 pb-1 max-md:px-3">
      <Face id="human" />
      <div className={cx("min-w-0 flex-1", isFaint && "opacity-60")}>
        <div className="flex items-baseline gap-2 leading-5">
          <span className="font-semibold">You</span>
          <span className="text-xs text-ink-3">{unsent.state === "sending" ? "Sending…" : unsent.state === "queued" ? "Queued: sent when the connection is back" : ""}</span>
        </div>
        <Markdown text={unsent.text} breaks />
        {unsent.state === "refused" && (
          <div role="alert" className="mt-1 flex flex-wrap items-center gap-2 text-xs text-fail">
            <CircleAlert className="size-3.5" aria-hidden /> Not delivered. {unsent.reason}
            <Button size="sm" onClick={() => sayAgain(unsent)}>
              <RotateCcw className="size-3.5" /> Try again
            </Button>
            <Button
              size="sm"
              look="plain"
              onClick={() => {
                takeBack(unsent);
                begin(unsent.agentId, unsent.text);
              }}
            >
              Edit
            </Button>
          </div>
        )}
      </div>
    </article>
  );
}

/** What is being written now; only this is drawn again with every few words. */
export function DraftRow({ threadId }: { threadId: string }) {
  const draft: Draft | undefined = useLive((state) => state.drafts[threadId]);
  const people = useContext(PeopleContext);
  if (!draft) return null;
  const isReply = draft.lane === "reply";
  return (
    <article className="flex gap-3 px-4 pt-2 pb-1 max-md:px-3" aria-busy>
      <Face id={draft.agentId} />
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline gap-2 leading-5">
          <span className="font-semibold">{nameOf(people, draft.agentId)}</span>
          <span className="flex items-center gap-1.5 text-xs text-work">
            <span className="pulse size-1.5 rounded-full bg-work-dot" aria-hidden /> {isReply ? "writing" : "thinking aloud"}
          </span>
        </div>
        <div className={cx(!isReply && "text-ink-2")}>
          <Markdown text={draft.text} breaks />
        </div>
      </div>
    </article>
  );
}

function Said({ row }: { row: SaidRow }) {
  return (
    <div className="py-1 pr-10 pl-[60px] text-ink-2 max-md:px-3">
      <Markdown text={row.text} breaks />
    </div>
  );
}

const ICONS = { assigned: CirclePlay, started: CirclePlay, done: CheckCircle2, failed: CircleAlert, cancelled: Ban, waiting: Hourglass, stage: Flag, person: UserRound, clock: AlarmClock, note: StickyNote, team: Users, model: Unplug };
const TONES = { plain: "text-ink-3", work: "text-work", done: "text-done", wait: "text-wait", fail: "text-fail" };

function SystemLine({ row, isMarked }: { row: SystemRow; isMarked: boolean }) {
  const people = useContext(PeopleContext);
  const Icon = ICONS[row.icon];
  const title = row.nodeId ? people.titles[row.nodeId]?.title || "its work" : "";
  const [before, after] = row.words.split("{node}");
  const board = row.nodeId ? screenHref(people.team, "board", "", `?node=${row.nodeId}`) : null;
  return (
    <div className={cx("flex items-start gap-3 py-1 pr-4 pl-4 text-sm text-ink-2 max-md:px-3", isMarked && "bg-wait-bg")}>
      <span className="flex h-5 w-8 shrink-0 items-center justify-center">
        <Icon className={cx("size-4", TONES[row.tone])} aria-hidden />
      </span>
      <p className="min-w-0 flex-1">
        {before}
        {row.nodeId &&
          (board ? (
            <Link to={board as "/"} className="font-medium text-ink hover:underline">
              {title}
            </Link>
          ) : (
            <span className="font-medium text-ink">{title}</span>
          ))}
        {after}
        {row.detail && <span className="text-ink-3">: {row.detail.length > 240 ? `${row.detail.slice(0, 240)}…` : row.detail}</span>}{" "}
        <time className="text-xs text-ink-3" dateTime={row.at} title={fullTime(row.at)}>
          {timeOf(row.at)}
        </time>
      </p>
    </div>
  );
}

function summary(calls: Call[]): string {
  const times = new Map<string, number>();
  for (const call of calls) times.set(call.name, (times.get(call.name) ?? 0) + 1);
  return [...times].map(([name, n]) => (n > 1 ? `${name} ×${n}` : name)).join(", ");
}

function took(calls: Call[]): number | null {
  const ends = calls.map((call) => (call.endedAt === null ? null : Date.parse(call.endedAt) - Date.parse(call.startedAt)));
  return ends.includes(null) ? null : ends.reduce<number>((sum, one) => sum + (one ?? 0), 0);
}

/** What an unanswered call of this work is about. */
const underWay = (people: People, nodeId: string): string => (people.titles[nodeId]?.isWaiting ? "waiting" : "running");

function Tools({ row }: { row: ToolsRow }) {
  const people = useContext(PeopleContext);
  const [isOpen, setIsOpen] = useState<boolean | null>(null);
  const open = isOpen ?? people.openTools;
  const failed = row.calls.filter((call) => call.failed).length;
  const time = took(row.calls);
  return (
    <div className="py-0.5 pr-4 pl-[60px] max-md:px-3">
      <button type="button" aria-expanded={open} onClick={() => setIsOpen(!open)} className="flex min-h-7 max-w-full items-center gap-2 rounded-sm text-sm text-ink-2 hover:text-ink pointer-coarse:min-h-10">
        <Wrench className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="shrink-0 font-medium">{plural(row.calls.length, "tool call")}</span>
        <span className="truncate text-xs text-ink-3">{summary(row.calls)}</span>
        {failed > 0 && <span className="shrink-0 text-xs font-medium text-fail">{failed} failed</span>}
        <span className="tabular shrink-0 text-xs text-ink-3">{time === null ? underWay(people, row.nodeId) : duration(time)}</span>
        <ChevronRight className={cx("size-3.5 shrink-0 transition-transform", open && "rotate-90")} aria-hidden />
      </button>
      {open && (
        <ul className="ml-1.5 border-l border-line pl-3">
          {row.calls.map((call, index) => (
            <ToolCall key={index} call={call} nodeId={row.nodeId} />
          ))}
        </ul>
      )}
    </div>
  );
}

/** What a call is about, in a few words: its most telling argument. */
function gist(call: Call): string {
  const known = ["path", "command", "query", "url", "content", "task", "message", "question", "summary", "name"];
  const found = known.map((name) => call.arguments[name]).find((value) => typeof value === "string");
  return String(found ?? Object.values(call.arguments)[0] ?? "").split("\n")[0]!;
}

function ToolCall({ call, nodeId }: { call: Call; nodeId: string }) {
  const people = useContext(PeopleContext);
  const [open, setOpen] = useState(false);
  const isRunning = call.endedAt === null;
  const whole = screenHref(people.team, "threads", call.threadId);
  return (
    <li>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex min-h-7 w-full items-center gap-2 rounded-sm px-1 text-left text-xs hover:bg-hover pointer-coarse:min-h-10">
        {call.failed && <CircleAlert className="size-3.5 shrink-0 text-fail" aria-label="Failed" />}
        <code className="shrink-0 font-medium">{call.name}</code>
        <code className="min-w-0 flex-1 truncate text-ink-3">{gist(call)}</code>
        <span className="tabular shrink-0 text-ink-3">{isRunning ? underWay(people, nodeId) : duration(Date.parse(call.endedAt!) - Date.parse(call.startedAt))}</span>
        <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3 transition-transform", open && "rotate-90")} aria-hidden />
      </button>
      {open && (
        <div className="mb-2 grid gap-2 pl-1 text-xs">
          <pre tabIndex={0} aria-label="Arguments" className="scroll max-h-60 rounded-sm bg-sunken p-2.5 whitespace-pre-wrap"><Literal text={JSON.stringify(call.arguments, null, 2)} /></pre>
          {!isRunning && (
            <pre tabIndex={0} aria-label="Answer" className={cx("scroll max-h-80 rounded-sm p-2.5 whitespace-pre-wrap", call.failed ? "bg-fail-bg" : "bg-sunken")}><Literal text={call.text || "(no words)"} /></pre>
          )}
          {whole && (
            <Link to={whole as "/"} className="w-fit text-ink-2 underline">
              The whole thread
            </Link>
          )}
        </div>
      )}
    </li>
  );
}
