/** Reader: one inbox item, with what the person can do about it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Archive, ArchiveRestore, ArrowLeft, Flag, MessageSquareReply, ThumbsDown, ThumbsUp } from "lucide-react";
import { Suspense, useEffect, useRef, useState } from "react";
import { api, errorMessage, type InboxItem, unwrap } from "@/api/client";
import { refreshItems } from "@/live/deltas";
import { teamQuery } from "@/api/queries";
import { live } from "@/live";
import { lazyChunk } from "@/live/chunks";
import { cx } from "@/lib/cx";
import { fullTime } from "@/lib/format";
import { authorOf, bodyOf, labelOf, splitNote, titleOf } from "@/parts/entries";
import { Doubts } from "@/parts/Doubts";
import { SaveText } from "@/parts/SaveText";
import { TEAM_STATES } from "@/parts/teamState";
import { isLate } from "@/parts/unanswered";
import { iconOf } from "@/views/inbox/ItemList";
import { SnoozeMenu } from "@/views/inbox/SnoozeMenu";
import type { Filing } from "@/views/inbox/useFiling";
import { Button, Chip, IconButton } from "@/ui";
import { showNote } from "@/parts/toast";
import { storedText, useComposer } from "@/views/composer/composerState";
import { Markdown } from "@/reading/Markdown";
import { QuestionCard } from "@/views/conversation/QuestionCard";
import { screenHref } from "@/lib/screens";
import { Sources } from "@/parts/Sources";
import { ShareButton } from "@/views/results/ShareButton";

const FailureActions = lazyChunk(() => import("@/views/conversation/FailureActions"));
const Report = lazyChunk(() => import("@/views/research/Report"));
const ItemFiles = lazyChunk(() => import("@/views/inbox/ItemFiles"));
/** Kinds of messages that hold a result. */
const DELIVERED = new Set<InboxItem["message"]["kind"]>(["result", "report"]);
/** Kinds of messages about work that has ended. */
const NAMES_FILES = new Set<InboxItem["message"]["kind"]>(["result", "report", "failure"]);

async function markRead(id: string): Promise<void> {
  await unwrap(api.POST("/api/inbox/{item}/read", { params: { path: { item: id } } }));
  await refreshItems([id]);
}

export function Reader({ item, file }: { item: InboxItem; file: (filing: Filing) => void }) {
  const { message, team_name: teamName } = item;
  const state = useQuery(teamQuery(message.team_id)).data?.state;
  const label = labelOf(item);
  const Icon = iconOf(item);
  const { note } = splitNote(item);
  const article = useRef<HTMLElement>(null);
  const answered = live.store.getState().logs[message.team_id]?.answers[message.id] ?? null;
  useEffect(() => {
    if (item.state !== "unread" || item.needs_answer) return;
    // An item counts as read after a moment, so that moving through the list with j and k does not mark everything. An
    // item that needs an answer stays unread until it is answered.
    const timer = setTimeout(() => void markRead(message.id).catch(() => {}), 600);
    return () => clearTimeout(timer);
  }, [item.state, item.needs_answer, message.id]);
  const board = message.node_id ? screenHref(message.team_id, "board", "", `?node=${message.node_id}`) : null;
  return (
    <>
      {/* Where there is no room for icons and words, the words stay. */}
      <header className="@container flex min-h-[52px] shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-1 max-md:gap-1.5 max-md:px-2">
        <Link to="/inbox" aria-label="Back to the inbox" className="flex size-10 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover min-[1180px]:hidden">
          <ArrowLeft className="size-5" />
        </Link>
        <span className="flex-1" />
        <SnoozeMenu onSnooze={(until) => file({ action: "snooze", items: [item], until })} />
        {item.box !== "inbox" ? (
          <Button title="Back to the inbox" onClick={() => file({ action: "restore", items: [item] })}>
            <ArchiveRestore className="size-4 @max-lg:hidden" aria-hidden /> Back to the inbox
          </Button>
        ) : (
          // What still waits for an answer can be put off, but not put away.
          !item.needs_answer && (
            <Button title="Archive" onClick={() => file({ action: "archive", items: [item] })}>
              <Archive className="size-4 @max-lg:hidden" aria-hidden /> Archive
            </Button>
          )
        )}
        {message.kind === "briefing" && <RatingButtons id={message.id} initial={message.rating} />}
        {board && (
          <Link to={board as "/"} title="Task" className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-10">
            <Flag className="size-4 @max-lg:hidden" aria-hidden /> Task
          </Link>
        )}
        {item.reply_to && (
          <Link
            to="/t/$team/a/$agent"
            params={{ team: message.team_id, agent: item.reply_to }}
            search={item.reply_to === message.sender ? { at: message.id } : {}}
            title="Reply"
            // With a modifier key the conversation opens in another tab, and this one stays in the inbox.
            onClick={(event) => event.ctrlKey || event.metaKey || event.shiftKey || startReply(item)}
            className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-10"
          >
            <MessageSquareReply className="size-4 @max-lg:hidden" aria-hidden /> Reply
          </Link>
        )}
      </header>
      <article ref={article} data-print="" className="scroll reader min-h-0 flex-1 px-6 py-8 max-md:px-4" tabIndex={0} aria-label={titleOf(item)}>
        <div className="mx-auto max-w-[680px]">
          <div className="mb-2 flex items-center gap-1">
            <Chip tone={label.tone}>
              <Icon className="size-3.5" aria-hidden /> {label.text}
            </Chip>
            <span className="flex-1" />
            <SaveText
              printed={() => article.current}
              what={() => ({ title: titleOf(item), byline: `${authorOf(item)} · ${teamName} · ${fullTime(message.created_at)}`, note, text: bodyOf(item), doubts: message.doubts, sources: message.sources })}
            />
            {message.node_id && DELIVERED.has(message.kind) && <ShareButton node={message.node_id} title={titleOf(item)} />}
          </div>
          {(message.kind === "question" || message.kind === "approval") ? (
            <>
              <h1 dir="auto" className="sr-only">{titleOf(item)}</h1>
              <p dir="auto" className="mb-3 text-sm text-ink-3">
                <bdi>{authorOf(item)}</bdi> · <bdi>{teamName}</bdi>{state && ` · ${TEAM_STATES[state].label}`} · {fullTime(message.created_at)}
              </p>
              <QuestionCard id={message.id} text={message.text} at={message.created_at} kind={message.kind} asker={authorOf(item)} message={message} answered={answered} always={item.always} isLate={isLate(item)} />
            </>
          ) : (
            <>
              <h1 dir="auto" className="text-xl font-semibold">{titleOf(item)}</h1>
              <p dir="auto" className="mb-6 text-sm text-ink-3">
                <bdi>{authorOf(item)}</bdi> · <bdi>{teamName}</bdi>{state && ` · ${TEAM_STATES[state].label}`} · {fullTime(message.created_at)}
              </p>
              {note && (
                <div role="note" className={cx("mb-6 rounded-md border p-3 text-sm", label.tone === "fail" ? "border-fail/30 bg-fail-bg" : "border-wait-line bg-wait-bg")}>
                  <Markdown text={note} />
                </div>
              )}
              {message.kind === "report" && message.node_id ? (
                <Suspense fallback={<Markdown text={bodyOf(item)} />}>
                  <Report node={message.node_id} text={bodyOf(item)} />
                </Suspense>
              ) : (
                <Markdown text={bodyOf(item)} breaks={message.kind !== "briefing"} />
              )}
              {message.kind === "briefing" && (
                <p className="mt-4 text-sm">
                  <Link to="/t/$team/a/$agent" params={{ team: message.team_id, agent: message.sender }} search={{ at: message.id }} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
                    Read all of it in the conversation
                  </Link>
                </p>
              )}
              <Doubts of={message.doubts} team={message.team_id} />
              <Sources of={message.sources} />
              {message.node_id && NAMES_FILES.has(message.kind) && (
                <Suspense>
                  <ItemFiles team={message.team_id} node={message.node_id} />
                </Suspense>
              )}
              {message.kind === "failure" && message.node_id && (
                <div role="group" aria-label="What to do" className="mt-6 flex flex-wrap gap-2 empty:hidden">
                  <Suspense>
                    <FailureActions node={message.node_id} />
                  </Suspense>
                </div>
              )}
            </>
          )}
          {item.deliveries.some((one) => one.status === "failed") && <p className="mt-6 text-xs text-fail">This message could not be sent to every channel. Run `agiraph doctor` to see why.</p>}
        </div>
      </article>
    </>
  );
}

/** Let the composer that opens take what is typed. If another agent than the sender knows the report, a message about it is begun there, unless one is begun already. */
function startReply(item: InboxItem): void {
  useComposer.setState({ wantsFocus: true });
  const agent = item.reply_to!;
  if (agent !== item.message.sender && !storedText(agent)) void useComposer.getState().putBefore(agent, `About “${titleOf(item)}”: `);
}

function RatingButtons({ id, initial }: { id: string; initial: "up" | "down" | null }) {
  const [rating, setRating] = useState(initial);
  const rate = (thumb: "up" | "down") =>
    unwrap(api.POST("/api/inbox/{item}/rate", { params: { path: { item: id } }, body: { thumb } })).then(
      () => setRating(thumb),
      (error: unknown) => showNote(errorMessage(error), true),
    );
  return (
    <>
      <span className="text-xs text-ink-3 max-sm:hidden">{rating === "up" ? "You will get more like this" : rating === "down" ? "You will get fewer like this" : "Worth your time?"}</span>
      <IconButton label="More like this" aria-pressed={rating === "up"} onClick={() => void rate("up")} variant={rating === "up" ? "primary" : "ghost"}>
        <ThumbsUp className="size-4" />
      </IconButton>
      <IconButton label="Fewer like this" aria-pressed={rating === "down"} onClick={() => void rate("down")} variant={rating === "down" ? "primary" : "ghost"}>
        <ThumbsDown className="size-4" />
      </IconButton>
    </>
  );
}
