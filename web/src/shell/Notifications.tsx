/** Notifications: a toast for each new question, one after the other, and for each team that ends elsewhere; and browser notifications if they are on. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate } from "@tanstack/react-router";
import { X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { QUESTIONS, toast } from "@/ui/toast";
import { api, type InboxRow, type TeamOverview, unwrap } from "@/api/client";
import { inboxItemQuery, inboxListQuery, openQuery, overviewQuery, queryClient, teamQuery } from "@/api/queries";
import { capitalize, plural } from "@/lib/format";
import { isQuiet } from "@/lib/quiet";
import { screenHref } from "@/lib/screens";
import { StateIcon } from "@/parts/StateIcon";
import { isAtWork, type TeamState } from "@/parts/teamState";
import { titleOf } from "@/parts/entries";
import { revealHidden } from "@/reading/visible";
import { isLate, unansweredItems, useOpenItems } from "@/parts/unanswered";
import { useShell } from "@/parts/shellState";
import { AnswerForm, LateNote, QuestionBody } from "@/views/conversation/QuestionCard";
import { ReadGate } from "@/reading/ReadGate";

const RENDER_DELAY_MS = 500;
/** So long a new toast takes no press: the pointer may be on its way to what was in its place, such as the toast before it. */
const SETTLE_MS = 700;
/** Kinds of messages that are worth a notification besides questions: an agent finished or failed. */
const NOTIFIED_KINDS = new Set(["report", "result", "failure"]);

/** What was in the inbox when the page was opened: the ids of what was not answered, and of the newest item. */
export interface Known {
  open: ReadonlySet<string>;
  newest: string;
}

export default function Notifications({ knownAtStart }: { knownAtStart: Known }) {
  const inbox = useQuery(openQuery());
  const notifications = useShell((state) => state.notifications);
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const openBefore = useRef(knownAtStart.open);
  const everKnown = useRef(new Set(knownAtStart.open));
  const newestKnown = useRef(knownAtStart.newest);
  const [queue, setQueue] = useState<readonly string[]>([]);
  const items = inbox.data?.items;

  useEffect(() => {
    if (!items) return;
    const before = openBefore.current;
    openBefore.current = new Set(items.map((item) => item.message.id));
    // What the person answered and has opened again is not new; what is back from a snooze is.
    const isNew = ({ message: { id }, snoozed_until }: InboxRow) => !before.has(id) && (snoozed_until !== null || !everKnown.current.has(id));
    const added = items.filter((item) => isNew(item) && item.state === "unread" && !isQuietNow(item.message.team_id));
    for (const item of items) everKnown.current.add(item.message.id);
    const addToQueue = (ids: readonly string[]) => {
      const open = unansweredItems(items).filter((item) => !isOnScreen(item, pathname)).map((item) => item.message.id);
      setQueue((before) => requeue(before, ids, open));
    };
    addToQueue(added.map((item) => item.message.id));
    // The page that was just opened may still be rendering the question card that makes the toast unnecessary.
    const timer = setTimeout(() => addToQueue([]), RENDER_DELAY_MS);
    for (const item of notifications && document.hidden ? added : []) notify(item, items, navigate);
    return () => clearTimeout(timer);
  }, [items, notifications, navigate, pathname]);

  const newest = inbox.data?.newest ?? "";
  useEndedToasts(newest, pathname);
  useEffect(() => {
    const after = newestKnown.current;
    if (newest <= after) return;
    newestKnown.current = newest;
    if (!notifications || !document.hidden) return;
    void unwrap(api.GET("/api/inbox/rows", { params: { query: { newer_than: after } } })).then(
      (rows) => rows.items.filter(({ message, state }) => NOTIFIED_KINDS.has(message.kind) && state === "unread" && !isQuietNow(message.team_id)).forEach((item) => notify(item, [], navigate)),
      () => {},
    );
  }, [newest, notifications, navigate]);

  useQuestionToast(queue[0], (id) => setQueue((before) => before.filter((one) => one !== id)));
  return null;
}

/** Tell the person of an item; `items` are all that are not answered. */
function notify(item: InboxRow, items: readonly InboxRow[], navigate: ReturnType<typeof useNavigate>): void {
  const { id, team_id } = item.message;
  const open = unansweredItems(items).filter((one) => one.message.team_id === team_id && one.message.kind === "question").length;
  void teamName(team_id).then((team) => showNotification(item, team, open, () => void navigate({ to: "/inbox/$item", params: { item: id } })));
}

/** Return the questions to show one after the other, in the order of `open`, which has all that may be shown. The first one stays: the person may be answering it. */
function requeue(queue: readonly string[], added: readonly string[], open: readonly string[]): readonly string[] {
  const [first] = queue;
  const rest = open.filter((id) => id !== first && (queue.includes(id) || added.includes(id)));
  return first !== undefined && open.includes(first) ? [first, ...rest] : rest;
}

/** Show one question as a toast until it is answered or the person closes it. The next one waits: it must not take the place of the one that the person is answering. */
function useQuestionToast(id: string | undefined, onClose: (id: string) => void): void {
  useEffect(() => {
    if (id === undefined) return;
    const close = () => onClose(id);
    toast.custom(() => <QuestionToast id={id} onClose={close} />, { id, duration: Number.POSITIVE_INFINITY, toasterId: QUESTIONS, onDismiss: close });
    return () => toast.dismiss(id);
  }, [id]); // eslint-disable-line
}

/** What is said of a team that has ended; of one that was stopped only if it has a part of the result. */
const ENDED_TEXTS: Partial<Record<TeamState, string>> = { done: "is done.", failed: "has failed.", stopped: "stopped with a part of the result." };
const ENDED_MS = 20_000;
const endedToast = (team: string) => `ended ${team}`;

/** The items of a team. What changes later is put into the list by `deltas.ts`. */
const itemsQuery = (team: string) => inboxListQuery({ box: "inbox", team, kind: null, open: false });
/** Return the newest message about the end of a team's work. */
const endOf = (items: { pages: readonly { items: readonly InboxRow[] }[] } | undefined): InboxRow | undefined =>
  items?.pages.flatMap((page) => page.items).filter(({ message }) => message.kind === "result" || message.kind === "failure").sort((one, other) => other.message.created_at.localeCompare(one.message.created_at))[0];

/** Say that a team has ended while the person is elsewhere: one toast for each team. `newest` changes with each new item. */
function useEndedToasts(newest: string, pathname: string): void {
  const teams = useQuery(overviewQuery).data;
  const states = useRef<ReadonlyMap<string, TeamState>>(new Map());
  /** Teams that were stopped: what they have of the result may come after the news. */
  const stopped = useRef(new Set<string>());
  const here = /^\/t\/([^/]+)/.exec(pathname)?.[1];
  useEffect(() => {
    const before = states.current;
    states.current = new Map(teams?.map((team) => [team.id, team.state]));
    const tell = (team: TeamOverview) => {
      if (team.id === here || isQuiet(team, new Date())) return;
      const id = endedToast(team.id);
      toast.custom(() => <EndedToast team={team} onClose={() => toast.dismiss(id)} />, { id, duration: ENDED_MS });
    };
    for (const team of teams ?? []) {
      const was = before.get(team.id);
      if (team.state !== "stopped") stopped.current.delete(team.id);
      if (was !== undefined && isAtWork(was) && team.state in ENDED_TEXTS) {
        if (team.state === "stopped") stopped.current.add(team.id);
        else tell(team);
      }
      if (!stopped.current.has(team.id)) continue;
      void queryClient.fetchInfiniteQuery(itemsQuery(team.id)).then(
        (items) => {
          const end = endOf(items);
          if (end?.state === "unread" && end.node_status === "partial" && stopped.current.delete(team.id)) tell(team);
        },
        () => {},
      );
    }
  }, [teams, newest, here]);
  useEffect(() => {
    if (here) toast.dismiss(endedToast(here));
  }, [here]);
}

function EndedToast({ team, onClose }: { team: TeamOverview; onClose: () => void }) {
  const end = endOf(useInfiniteQuery(itemsQuery(team.id)).data);
  const wasUnread = useRef(false);
  useEffect(() => {
    if (wasUnread.current && end?.state !== "unread") onClose();
    wasUnread.current = end?.state === "unread";
  }, [end?.state]); // eslint-disable-line
  return (
    <div role="status" className="flex w-[340px] items-center gap-2.5 rounded-md border border-line bg-surface py-1.5 pr-1.5 pl-3.5 text-sm shadow-high max-md:w-full">
      <StateIcon state={team.state} />
      <span dir="auto" className="min-w-0 flex-1 py-1">
        <span className="font-semibold">{team.name}</span> {ENDED_TEXTS[team.state]}
      </span>
      <Link
        to={(end ? `/inbox/${end.message.id}` : screenHref(team.id, "results")) as "/"}
        onClick={onClose}
        className="pointer-events-auto inline-flex h-8 shrink-0 items-center rounded-sm border border-line-2 px-2.5 text-xs font-medium hover:bg-hover pointer-coarse:h-11"
      >
        {team.state === "done" ? "See the result" : "See what happened"}
      </Link>
      <button type="button" aria-label="Close" onClick={onClose} className="pointer-events-auto flex size-8 shrink-0 items-center justify-center rounded-sm text-ink-3 hover:bg-hover pointer-coarse:size-11">
        <X className="size-4" />
      </button>
    </div>
  );
}

/** Whether the team is muted, or has quiet hours now. What it says is in the inbox all the same. */
function isQuietNow(teamId: string): boolean {
  const team = queryClient.getQueryData(overviewQuery.queryKey)?.find((one) => one.id === teamId);
  return team !== undefined && isQuiet(team, new Date());
}

/** Whether the current page already shows the question. A toast would show it twice. */
const isOnScreen = ({ message }: InboxRow, pathname: string): boolean =>
  pathname.startsWith("/inbox") || pathname.includes(message.sender) || document.querySelector(`[data-question="${message.id}"]`) !== null;

/** Return the name of a team. A team that was just created may not be in the list yet. */
async function teamName(id: string): Promise<string> {
  const known = queryClient.getQueryData(overviewQuery.queryKey)?.find((one) => one.id === id);
  return known?.name ?? (await queryClient.fetchQuery(teamQuery(id)).then((team) => team.name, () => ""));
}

function QuestionToast({ id, onClose }: { id: string; onClose: () => void }) {
  const open = useOpenItems();
  const row = open.find((one) => one.message.id === id);
  // The person decides by all its words.
  const item = useQuery({ ...inboxItemQuery(id), enabled: row !== undefined }).data;
  const team = useQuery(overviewQuery).data?.find((one) => one.id === item?.message.team_id)?.name ?? "";
  const [isSettled, setIsSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsSettled(true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, []);
  // Answered meanwhile: the toast is about to disappear.
  if (!row || !item) return null;
  const { message } = item;
  const kind = message.kind === "approval" ? "approval" : "question";
  const asker = capitalize(message.sender_name);
  const late = isLate(row);
  const more = open.length - 1;
  return (
    <fieldset disabled={!isSettled} aria-label={`${message.sender_name} asks${team && `, ${team}`}`} className="scroll max-h-[calc(100dvh-84px)] w-[372px] max-w-[calc(100vw-24px)] rounded-lg border border-wait-line bg-surface p-4 shadow-high">
      <div className="mb-1 flex items-center gap-2">
        <span aria-hidden className="size-2 shrink-0 rotate-45 rounded-[1px] bg-wait-dot" />
        <Link dir="auto" to="/t/$team/a/$agent" params={{ team: message.team_id, agent: message.sender }} search={{ at: message.id }} onClick={onClose} className="min-w-0 flex-1 truncate text-sm font-semibold hover:underline">
          {asker} {kind === "approval" ? (late ? "wanted your approval" : "wants your approval") : late ? "asked" : "asks"}
          {team && (
            <span dir="auto" className="font-normal text-ink-2">
              {" "}
              · {team}
            </span>
          )}
        </Link>
        <button type="button" aria-label="Later" title="Later; it stays in the inbox" onClick={onClose} className="-my-2 flex size-7 items-center justify-center rounded-sm text-ink-3 hover:bg-hover pointer-coarse:-mr-2 pointer-coarse:size-11">
          <X className="size-4" />
        </button>
      </div>
      {late && <LateNote />}
      <ReadGate>
        <div tabIndex={0} role="group" aria-label="Question" className="scroll scroll-shade -mx-2 max-h-[56vh] px-2 pb-1 text-sm">
          <QuestionBody text={message.text} kind={kind} message={message} />
        </div>
        <AnswerForm id={message.id} kind={kind} options={message.options} onDone={onClose} />
      </ReadGate>
      {more > 0 && (
        <Link to="/inbox" className="mt-2 flex min-h-6 w-fit items-center text-xs text-ink-2 underline pointer-coarse:min-h-11">
          {more} more in the inbox
        </Link>
      )}
    </fieldset>
  );
}

/** Show a notification. The questions of a team have one: each further one takes its place, and says how many are open. */
function showNotification(item: InboxRow, team: string, openQuestions: number, open: () => void): void {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const { message } = item;
  // The text comes from an agent: hidden characters are shown as code points.
  const what = item.needs_answer ? "needs you" : message.kind === "failure" ? "failed" : "finished";
  const isQuestion = item.needs_answer && message.kind === "question";
  const who = isQuestion && openQuestions > 1 ? plural(openQuestions, "open question") : `${capitalize(message.sender_name)} ${what}`;
  const tag = isQuestion ? `questions of ${message.team_id}` : message.id;
  const notification = new Notification(revealHidden(`${who}${team && ` · ${team}`}`), { body: titleOf(item).slice(0, 140), tag, icon: "/icon.svg" });
  notification.onclick = () => {
    window.focus();
    notification.close();
    open();
  };
}
