/** Inbox: items that need an answer first, then the newest ones; the selected item is shown on the right. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { ArrowLeft, CircleAlert, CircleSlash2, FileText, Flag, Inbox, ListChecks, MailOpen, MessageCircleQuestion, MessageSquareReply, Newspaper, ShieldQuestion, ThumbsDown, ThumbsUp } from "lucide-react";
import { Suspense, useEffect, useMemo, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { toast } from "@/ui/toast";
import { api, errorMessage, type InboxItem, type Team, unwrap } from "@/api/client";
import { digestQuery, inboxQuery, queryKeys, queryClient, teamsQuery } from "@/api/queries";
import { live } from "@/live";
import { cx } from "@/lib/cx";
import { capitalize, fullTime, shortTime } from "@/lib/format";
import { bodyOf, labelOf, previewOf, splitNote, titleOf } from "@/inbox/entries";
import { Chip, EmptyState, Header, IconButton, Kbd, Loading, Pills, ErrorPanel, type Tone } from "@/ui";
import { SidebarButton } from "@/shell/SidebarButton";
import { unansweredItems } from "@/shell/unanswered";
import { ToastMessage } from "@/conversation/AgentPage";
import { storedText, useComposer } from "@/conversation/composerState";
import { Markdown } from "@/conversation/Markdown";
import { QuestionCard } from "@/conversation/QuestionCard";
import { screenHref } from "@/views";
import { Sources } from "@/views/shared/Sources";

const Digest = lazyChunk(() => import("@/inbox/Digest"));
const FailureActions = lazyChunk(() => import("@/inbox/FailureActions"));
const Report = lazyChunk(() => import("@/research/Report"));

const FILTERS = [
  ["all", "All"],
  ["needs", "Needs you"],
  ["report", "Reports"],
  ["briefing", "Briefings"],
  ["result", "Results"],
  ["failure", "Not done"],
] as const;
type Filter = (typeof FILTERS)[number][0];

const ICONS: Partial<Record<InboxItem["message"]["kind"], typeof FileText>> = { question: MessageCircleQuestion, approval: ShieldQuestion, briefing: Newspaper, report: FileText, result: Flag, failure: CircleAlert };
/** The icon of an item. A task that stopped with something to show is no failure. */
const iconOf = (item: InboxItem): typeof FileText => (item.message.kind === "failure" && labelOf(item).tone !== "fail" ? CircleSlash2 : (ICONS[item.message.kind] ?? FileText));
const ICON_TONES: Record<Tone, string> = { plain: "text-ink-3", work: "text-work", done: "text-done", wait: "text-wait", fail: "text-fail" };

async function markRead(id: string): Promise<void> {
  await unwrap(api.POST("/api/inbox/{item}/read", { params: { path: { item: id } } }));
  await queryClient.invalidateQueries({ queryKey: queryKeys.inbox });
}

export function InboxPage() {
  const item = useParams({ strict: false }).item ?? null;
  const inbox = useQuery(inboxQuery);
  const teams = useQuery(teamsQuery);
  const decisions = useQuery(digestQuery).data?.reduce((sum, team) => sum + team.entries.filter((entry) => entry.kind !== "ask").length, 0) ?? 0;
  const [filter, setFilter] = useState<Filter>("all");
  const navigate = useNavigate();
  const items = useMemo(() => {
    const all = inbox.data?.items ?? [];
    return filter === "all" ? all : filter === "needs" ? unansweredItems(all) : all.filter((one) => one.message.kind === filter);
  }, [inbox.data, filter]);
  const unanswered = unansweredItems(items);
  const rest = items.filter((one) => !one.needs_answer);
  const order = [...unanswered, ...rest];
  const chosen = inbox.data?.items.find((one) => one.message.id === item);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, [role=dialog]");
      if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key !== "j" && event.key !== "k") return;
      event.preventDefault();
      const now = order.findIndex((one) => one.message.id === item);
      const next = order[Math.max(0, Math.min(order.length - 1, now + (event.key === "j" ? 1 : -1)))];
      if (next) void navigate({ to: "/inbox/$item", params: { item: next.message.id } });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [order, item, navigate]);

  const readAll = () => void Promise.all((inbox.data?.items ?? []).filter((one) => one.state === "unread" && !one.needs_answer).map((one) => markRead(one.message.id)));
  const teamOf = (one: InboxItem) => teams.data?.find((team) => team.id === one.message.team_id);
  return (
    <div className="flex min-h-0 flex-1">
      <div className={cx("flex w-[372px] shrink-0 flex-col border-r border-line max-lg:w-[320px] max-md:w-full max-md:border-r-0", item !== null && "max-md:hidden")}>
        <Header lead={<SidebarButton />} title="Inbox">
          <IconButton label="Mark everything as read" onClick={readAll}>
            <MailOpen className="size-4" />
          </IconButton>
        </Header>
        <div className="shrink-0 border-b border-line px-3 py-2">
          <Pills label="Show" value={filter} onChange={setFilter} options={FILTERS} />
        </div>
        <div className="scroll min-h-0 flex-1" tabIndex={0} role="region" aria-label="Items">
          {inbox.isPending && <Loading label="Loading the inbox" />}
          {inbox.isError && <ErrorPanel title="The inbox could not be loaded" detail={errorMessage(inbox.error)} onRetry={() => void inbox.refetch()} />}
          {inbox.isSuccess && order.length === 0 && (
            <EmptyState icon={<Inbox />} title={filter === "all" ? "Nothing here" : "Nothing of this kind"}>
              Questions, approvals, briefings, reports and failures arrive here. Agents write when something needs your attention.
            </EmptyState>
          )}
          {unanswered.length > 0 && <Group name="Needs you" items={unanswered} chosen={item} teamOf={teamOf} />}
          {decisions > 0 && (
            <Link to="/inbox/$item" params={{ item: "digest" }} aria-current={item === "digest" ? "true" : undefined} className={cx("flex items-center gap-3 px-4 py-2.5 hover:bg-hover", item === "digest" && "bg-press hover:bg-press")}>
              <ListChecks className="size-4 shrink-0 text-ink-3" aria-hidden />
              <span className="flex-1 text-base leading-5 font-medium">Needs review</span>
              <span className="tabular text-xs text-ink-3">{decisions}</span>
            </Link>
          )}
          {rest.length > 0 && <Group name="Latest" items={rest} chosen={item} teamOf={teamOf} />}
        </div>
        <div className="flex h-9 shrink-0 items-center gap-2 border-t border-line px-4 text-2xs text-ink-3 max-md:hidden">
          <Kbd>J</Kbd>
          <Kbd>K</Kbd> move <Kbd className="ml-2">1–9</Kbd> answer
        </div>
      </div>
      <div className={cx("flex min-w-0 flex-1 flex-col", item === null && "max-md:hidden")}>
        {item === null ? (
          <EmptyState icon={<Inbox />} title="Choose something to read">
            {unanswered.length > 0 ? "Items that wait for your answer come first." : "Nobody is waiting for your answer."}
          </EmptyState>
        ) : item === "digest" ? (
          <Suspense fallback={<Loading label="Loading what needs review" />}>
            <Digest />
          </Suspense>
        ) : chosen ? (
          <Reader key={item} item={chosen} team={teamOf(chosen)} />
        ) : inbox.isPending ? (
          <Loading label="Loading the item" />
        ) : (
          <EmptyState title="This item is no longer in the inbox" action={<Link to="/inbox" className="text-sm underline">Back to the inbox</Link>} />
        )}
      </div>
    </div>
  );
}

function Group({ name, items, chosen, teamOf }: { name: string; items: InboxItem[]; chosen: string | null; teamOf: (item: InboxItem) => Team | undefined }) {
  return (
    <section aria-label={name}>
      <h2 className="px-4 pt-3 pb-1 text-xs font-semibold text-ink-2">{name}</h2>
      <ul>
        {items.map((item) => {
          const { message } = item;
          const Icon = iconOf(item);
          const label = labelOf(item);
          return (
            <li key={message.id}>
              <Link
                to="/inbox/$item"
                params={{ item: message.id }}
                aria-current={chosen === message.id ? "true" : undefined}
                className={cx("relative flex gap-3 px-4 py-2.5 hover:bg-hover", item.needs_answer && "bg-wait-bg", chosen === message.id && "bg-press hover:bg-press")}
              >
                {item.state === "unread" && <span role="img" aria-label="Unread" className="absolute top-[18px] left-1.5 size-1.5 rounded-full bg-ink" />}
                <Icon className={cx("mt-0.5 size-4 shrink-0", ICON_TONES[label.tone])} aria-label={label.text} />
                <span className="min-w-0 flex-1">
                  <span className="flex items-baseline gap-2">
                    <span className={cx("min-w-0 flex-1 truncate text-base leading-5", item.state === "unread" ? "font-semibold" : "font-medium")}>{titleOf(item)}</span>
                    <time className="tabular text-xs text-ink-3" dateTime={message.created_at} title={fullTime(message.created_at)}>
                      {shortTime(message.created_at)}
                    </time>
                  </span>
                  <span dir="auto" className="block truncate text-xs text-ink-3">
                    {label.tone !== "plain" && !item.needs_answer && <span dir="auto" className={cx("font-medium", ICON_TONES[label.tone])}>{label.text} · </span>}
                    {capitalize(message.sender_name)} · {teamOf(item)?.name ?? "a team"}
                  </span>
                  <span className="line-clamp-2 text-sm text-ink-2">{previewOf(item)}</span>
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Reader({ item, team }: { item: InboxItem; team: Team | undefined }) {
  const { message } = item;
  const label = labelOf(item);
  const Icon = iconOf(item);
  const { note } = splitNote(item);
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
      <header className="@container flex h-[52px] shrink-0 items-center gap-2 border-b border-line px-4 max-md:px-2">
        <Link to="/inbox" aria-label="Back to the inbox" className="flex size-10 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover md:hidden">
          <ArrowLeft className="size-5" />
        </Link>
        <span className="flex-1" />
        {message.kind === "briefing" && <RatingButtons id={message.id} initial={message.rating} />}
        {message.kind === "failure" && message.node_id && (
          <Suspense>
            <FailureActions node={message.node_id} size="md" />
          </Suspense>
        )}
        {board && (
          <Link to={board as "/"} title="Task" className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-10">
            <Flag className="size-4" /> <span className="@max-lg:sr-only">Task</span>
          </Link>
        )}
        {item.reply_to && (
          <Link
            to="/t/$team/a/$agent"
            params={{ team: message.team_id, agent: item.reply_to }}
            search={item.reply_to === message.sender ? { at: message.id } : {}}
            title="Reply"
            onClick={() => item.reply_to !== message.sender && startReply(item.reply_to!, titleOf(item))}
            className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-10"
          >
            <MessageSquareReply className="size-4" /> <span className="@max-lg:sr-only">Reply</span>
          </Link>
        )}
      </header>
      <article className="scroll reader min-h-0 flex-1 px-6 py-8 max-md:px-4" tabIndex={0} aria-label={titleOf(item)}>
        <div className="mx-auto max-w-[680px]">
          <Chip tone={label.tone} className="mb-2">
            <Icon className="size-3.5" aria-hidden /> {label.text}
          </Chip>
          {(message.kind === "question" || message.kind === "approval") ? (
            <>
              <h1 className="sr-only">{titleOf(item)}</h1>
              <p dir="auto" className="mb-3 text-sm text-ink-3">
                {capitalize(message.sender_name)} · {team?.name} · {fullTime(message.created_at)}
              </p>
              <QuestionCard id={message.id} text={message.text} at={message.created_at} kind={message.kind} asker={capitalize(message.sender_name)} message={message} answered={answered} always={item.always} />
            </>
          ) : (
            <>
              <h1 className="text-xl font-semibold">{titleOf(item)}</h1>
              <p dir="auto" className="mb-6 text-sm text-ink-3">
                {capitalize(message.sender_name)} · {team?.name} · {fullTime(message.created_at)}
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
                <Markdown text={bodyOf(item)} />
              )}
              <Sources of={message.sources} />
            </>
          )}
          {item.deliveries.some((one) => one.status === "failed") && <p className="mt-6 text-xs text-fail">This message could not be sent to every channel. Run `agiraph doctor` to see why.</p>}
        </div>
      </article>
    </>
  );
}

/** Begin a message to the agent that knows the report, unless one is begun already. */
function startReply(agent: string, title: string): void {
  if (!storedText(agent)) useComposer.getState().editText(agent, `About “${title}”: `);
}

function RatingButtons({ id, initial }: { id: string; initial: "up" | "down" | null }) {
  const [rating, setRating] = useState(initial);
  const rate = (thumb: "up" | "down") =>
    unwrap(api.POST("/api/inbox/{item}/rate", { params: { path: { item: id } }, body: { thumb } })).then(
      () => setRating(thumb),
      (error: unknown) => void toast.custom(() => <ToastMessage text={errorMessage(error)} isError />),
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
