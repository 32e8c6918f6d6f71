/** ConversationView: a virtualized list of an agent's messages, tool calls and events. It stays at the end while the person reads there. */
import { useQuery } from "@tanstack/react-query";
import { elementScroll, useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, MessageCircle } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useShallow } from "zustand/shallow";
import { type Agent, api, errorMessage, type Message, type Team, unwrap } from "@/api/client";
import { conversationQuery, queryKeys, loadMessagesUntil, loadOlderMessages, queryClient } from "@/api/queries";
import { hasArrivedAfterAll, live, useLive } from "@/live";
import type { NodeSummary, Row } from "@/live/log";
import { isFinished } from "@/lib/endings";
import { capitalize } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import { Button, EmptyState, Loading, ErrorPanel } from "@/ui";
import type { FoldedItem, ViewMode } from "@/views/conversation/folding";
import { buildItems, firstUnread, type Item } from "@/views/conversation/items";
import { linesOfMates, LiveRow, type Mate, MateRow } from "@/views/conversation/LiveRow";
import { DraftItem, TeamContext, ItemView } from "@/views/conversation/rows";
import { searchedWords, showWords } from "@/reading/foundWords";
import { useShell } from "@/parts/shellState";
import { showNote, showToast } from "@/parts/toast";

const NO_ROWS: Row[] = [];
const NO_NODES: Record<string, NodeSummary> = {};
const NO_AGENTS: Record<string, Row[]> = {};
const NO_MATES: Mate[] = [];
/** What stands below the items: replies that are being written, the agent that works and has taken no step, and its teammates. */
type Tail = { kind: "draft"; key: string; threadId: string } | { kind: "alone"; key: string } | MateItem;
interface MateItem {
  kind: "mate";
  key: string;
  mate: Mate;
}
const toItem = (mate: Mate, before: string): MateItem => ({ kind: "mate", key: `mate ${mate.agentId} ${before}`, mate });
/** What the list shows: the items of the conversation, and between them the lines of teammates. */
type Shown = Item | MateItem;
const ALONE: Tail = { kind: "alone", key: "alone" };

/** Whether an agent works. Its task may have ended before its status is fetched again: a line that went later would move what the person is about to press. */
function isWorking({ status, node_id }: Agent, nodes: Readonly<Record<string, NodeSummary>>): boolean {
  const known = nodes[node_id ?? ""]?.status;
  return status === "working" && !(known && isFinished(known));
}

/** Return the folded line that the newest rows are in, if there is one: while the agent works, it says what it does. */
function liveFoldOf(items: readonly Shown[]): FoldedItem | undefined {
  const fold = items.findLast((item) => item.kind === "folded");
  const last = items.at(-1);
  const isNewest = fold === last || (last?.kind === "row" && fold?.rows.at(-1) === last.row);
  return isNewest && fold?.rows.some((row) => row.kind !== "system") ? fold : undefined;
}

/** A scroll position closer to the end than this counts as the end. */
const AT_END_PX = 80;
/** Earlier messages are loaded when the person is this close to the first one. */
const AHEAD_PX = 800;
/** So many pages are loaded for one movement, if they show nothing to scroll to. */
const MAX_PAGES_AHEAD = 10;
/** So many frames new rows are measured in. */
const SETTLING_FRAMES = 6;
/** A message counts as read after it was visible this long. */
const READ_DELAY_MS = 600;
/** At most this many older pages are loaded to find the message that the URL names. */
const MAX_SEARCHED_PAGES = 10;

interface Props {
  team: Team;
  agent: Agent;
  agents: Agent[];
  at?: string;
  /** The words that were searched for, if a search has found what `at` names. */
  words?: string[];
  view: ViewMode;
  expandTools: boolean;
  isCoordinator: boolean;
}

export function ConversationView({ team, agent, agents, at, words, view, expandTools, isCoordinator }: Props) {
  const conversation = useQuery(conversationQuery(agent.id));
  const log = useLive((state) => state.logs[team.id]);
  const hasHello = useLive((state) => state.epoch !== null);
  const isAway = useLive((state) => state.epoch === null && state.lostAt !== null);
  const unsent = useLive(useShallow((state) => state.unsent.filter((one) => one.agentId === agent.id)));
  // In the conversation, the words of work stand in the line that says what the agent does.
  const drafts = useLive(useShallow((state) => Object.values(state.drafts).filter((one) => one.agentId === agent.id && (one.lane === "reply" || (one.lane === "work" && view === "work"))).map((one) => one.threadId)));
  const isAtWork = useLive((state) => view === "conversation" && Object.values(state.drafts).some((one) => one.agentId === agent.id && one.lane === "work")) || (drafts.length === 0 && isWorking(agent, log?.nodes ?? NO_NODES));
  const [loadError, setLoadError] = useState<unknown>(null);
  const hasLog = log !== undefined;
  useEffect(() => {
    // The newest page is counted back from the team's head, which arrives with the server's hello.
    if (hasHello && !hasLog) live.loadNewest(team.id, team.coordinator_id).then(() => setLoadError(null), setLoadError);
  }, [hasHello, hasLog, team.id, team.coordinator_id]);

  const messages = conversation.data?.messages;
  useEffect(() => {
    void hasArrivedAfterAll(messages ?? []).then((hasArrived) => hasArrived && showToast("The message that you took back had already arrived."));
  }, [messages]);
  const newFrom = useFirstUnread(agent.id, messages, !conversation.isFetching || conversation.isError);
  const rows = log?.rowsByAgent[agent.id] ?? NO_ROWS;
  const hasEarlier = (conversation.data?.hasMore ?? false) || (log?.first ?? 0) > 1;
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(new Map());
  const fold = useCallback((key: string, isOpen: boolean) => setOpened((known) => new Map(known).set(key, isOpen)), []);
  const nodes = log?.nodes ?? NO_NODES;
  const rowsByAgent = log?.rowsByAgent ?? NO_AGENTS;
  const mates = useMemo(() => (isCoordinator && view === "conversation" ? linesOfMates(agents.filter((one) => one.id !== agent.id).map((one) => ({ id: one.id, isLive: isWorking(one, nodes) })), rowsByAgent, rows) : null), [isCoordinator, view, agents, agent.id, nodes, rowsByAgent, rows]);
  const items = useMemo(() => {
    const built = buildItems({ messages: messages ?? [], rows, unsent, hasEarlier, firstUnread: newFrom, view, nodes, opened, at });
    return mates === null || mates.before.size === 0 ? built : built.flatMap((item): Shown[] => [...(item.kind === "row" ? (mates.before.get(item.row.key) ?? NO_MATES).map((mate) => toItem(mate, item.key)) : []), item]);
  }, [messages, rows, unsent, hasEarlier, newFrom, view, nodes, opened, at, mates]);
  const sent = unsent.at(-1)?.clientId;

  const tail = useMemo((): Tail[] => {
    const isFolded = liveFoldOf(items) !== undefined;
    return [...drafts.map((threadId): Tail => ({ kind: "draft", key: `draft ${threadId}`, threadId })), ...(isAtWork && !isFolded ? [ALONE] : []), ...(mates?.now ?? NO_MATES).map((mate) => toItem(mate, ""))];
  }, [drafts, isAtWork, items, mates]);

  const teamInfo = useMemo(() => {
    const joined = agents.toSorted((a, b) => a.created_at.localeCompare(b.created_at));
    const members = new Map(joined.map((one, index) => [one.id, { name: capitalize(one.name), order: index, isCoordinator: one.id === team.coordinator_id }]));
    return { members, team: team.id, nodes, answers: log?.answers ?? {}, expandTools };
  }, [agents, team.coordinator_id, team.id, nodes, log?.answers, expandTools]);

  if (conversation.isError && !messages) return <div className="min-h-0 flex-1"><ErrorPanel title="The conversation could not be loaded" detail={errorMessage(conversation.error)} onRetry={() => void conversation.refetch()} /></div>;
  if (loadError !== null && !log) return <div className="min-h-0 flex-1"><ErrorPanel title="The events could not be loaded" detail={errorMessage(loadError)} onRetry={() => void live.loadNewest(team.id, team.coordinator_id).then(() => setLoadError(null), setLoadError)} /></div>;
  // Opened while the server is away: what was said is shown without what was done.
  if (!messages || (!log && !isAway)) return <Loading className="flex-1" label="Loading the conversation" />;
  return (
    <TeamContext value={teamInfo}>
      {items.length === 0 && tail.length === 0 ? (
        <div className="min-h-0 flex-1">
          <EmptyState icon={<MessageCircle />} title="No messages yet">
            {isCoordinator
              ? "The coordinator plans, hires and reports here. Write to it whenever you like; it answers while the work continues."
              : `What ${capitalize(agent.name)} does and says appears here. A message goes straight to it.`}
          </EmptyState>
        </div>
      ) : (
        <Scroller key={agent.id} items={items} tail={tail} isAtWork={isAtWork} rows={rows} at={at} words={words} sent={sent} team={team} agent={agent} messages={messages} onFold={fold} />
      )}
    </TeamContext>
  );
}

/** Return the message below the "New" line: the first unread one when the conversation was opened. It does not move while the person reads here, and goes when they have read the message elsewhere: in the inbox, in another tab, on another device. */
function useFirstUnread(agentId: string, messages: Message[] | undefined, isFresh: boolean): string | null {
  const [first, setFirst] = useState<string | null>(null);
  const isDecided = useRef(false);
  useEffect(() => {
    // The cache may be older than what the person has read since.
    if (isDecided.current || !messages || !isFresh) return;
    isDecided.current = true;
    setFirst(firstUnread(messages, agentId));
  }, [agentId, messages, isFresh]);
  const isSeen = messages?.some((message) => message.id === first && message.seen_at !== null) ?? false;
  useEffect(() => {
    if (first !== null && isSeen && !readHere.has(first)) setFirst(null);
  }, [first, isSeen]);
  return first;
}

/** The messages that this page itself has reported as read. */
const readHere = new Set<string>();

interface ScrollerProps {
  items: Shown[];
  tail: Tail[];
  isAtWork: boolean;
  rows: readonly Row[];
  at?: string;
  words?: string[];
  /** The newest message that this page is sending. */
  sent?: string;
  team: Team;
  agent: Agent;
  messages: Message[];
  onFold: (key: string, isOpen: boolean) => void;
}

function Scroller({ items, tail, isAtWork, rows, at, words, sent, team, agent, messages, onFold }: ScrollerProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setIsAtEnd] = useState(true);
  const [seenKey, setSeenKey] = useState<string | undefined>();
  const [isLoading, setIsLoading] = useState(false);
  const count = items.length + tail.length;
  const liveFold = isAtWork ? liveFoldOf(items) : undefined;
  // The virtualizer computes the positions of all rows again when this function changes, so it must be stable.
  const itemKey = useCallback((index: number) => items[index]?.key ?? tail[index - items.length]!.key, [items, tail]);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => estimateRowPx(items[index]),
    getItemKey: itemKey,
    overscan: 8,
    // Keep the visible rows in place when rows are added above them.
    anchorTo: "end",
    paddingStart: 12,
    paddingEnd: 16,
    // The virtualizer writes positions to the DOM without a React render. When a row turns out taller than estimated, the
    // rows below it are only moved.
    directDomUpdates: true,
    // Rows are rendered ahead of the visible part (overscan), so a synchronous render on each scroll event is not needed.
    useFlushSync: false,
    // What the virtualizer moves is nobody who scrolls up. The person may have scrolled before, with the event still to come.
    scrollToFn: (offset, options, of) => {
      const element = scroller.current;
      if (element) updatePinned(element);
      elementScroll(offset, options, of);
      if (element) lastScrollTop.current = element.scrollTop;
    },
    onChange: (now) => {
      if (now.getTotalSize() !== lastTotalSize.current) scrollToEndIfPinned();
      lastTotalSize.current = now.getTotalSize();
      if (settlingFrames.current > 0) holdAnchor();
      else if (shownFirst.current === firstRow) noteAnchor();
    },
  });
  const settlingFrames = useRef(0);
  /** Put the row that the person reads back to where it was. No command of the virtualizer does it: that would not follow the rows above, which are measured only now. */
  const holdAnchor = () => {
    const [element, saved] = [scroller.current, anchor.current];
    const row = saved && virtualizer.measurementsCache.find((one) => one.key === saved.key);
    if (element && row && !isPinned.current) element.scrollTop = virtualizer.scrollOffset = lastScrollTop.current = row.start - saved.delta;
  };

  // While pinned, the list is scrolled to its end whenever its height changes: new rows are measured only after they are
  // rendered, so their height is not known before. Scrolling up unpins.
  const isPinned = useRef(at === undefined);
  const lastTotalSize = useRef(0);
  const lastScrollTop = useRef(0);
  /** Update the pin from the scroll position; return whether the end is in view. */
  const updatePinned = (element: HTMLElement): boolean => {
    const distanceToEnd = element.scrollHeight - element.scrollTop - element.clientHeight;
    // When the list gets shorter, the browser moves it by itself: that is nobody who scrolls up.
    const moved = element.scrollTop - Math.min(lastScrollTop.current, element.scrollHeight - element.clientHeight);
    if (distanceToEnd < 2 || (distanceToEnd < AT_END_PX && moved > 0)) isPinned.current = true;
    else if (moved < -2) isPinned.current = false;
    lastScrollTop.current = element.scrollTop;
    return distanceToEnd < AT_END_PX || isPinned.current;
  };
  const scrollToEndIfPinned = () => {
    const element = scroller.current;
    // The person may have scrolled up and the scroll event is still to come. Read the position first, or the list would
    // pull them back to the end.
    if (!element || !isPinned.current) return;
    updatePinned(element);
    if (!isPinned.current) return;
    element.scrollTop = element.scrollHeight;
    lastScrollTop.current = element.scrollTop;
  };
  // Start at the end, or at the message that the URL names.
  const scrolledTo = useRef<string | null>(null);
  const repeatedJumps = useShell((state) => state.repeatedJumps);
  useLayoutEffect(() => {
    if (repeatedJumps > 0) scrolledTo.current = null;
  }, [repeatedJumps]);
  useLayoutEffect(() => {
    const target = at ?? "end";
    if (scrolledTo.current === target) return;
    const index = at ? items.findIndex((item) => isAt(item, at)) : count - 1;
    if (index < 0) return;
    scrolledTo.current = target;
    if (!at) return;
    isPinned.current = false;
    // The virtualizer knows the new rows only after this render, and keeps the rows in place that were visible before it: say it again until it has done both.
    const scroll = (frames: number) =>
      requestAnimationFrame(() => {
        const isTall = (virtualizer.measurementsCache[index]?.size ?? 0) > (scroller.current?.clientHeight ?? 0);
        virtualizer.scrollToIndex(index, { align: isTall ? "start" : "center" });
        if (frames > 1) scroll(frames - 1);
        else showWords(() => scroller.current?.querySelector("[data-found]"), words ?? searchedWords());
      });
    scroll(4);
  }, [at, words, items, count, virtualizer, repeatedJumps]);

  const fold = useCallback(
    (key: string, isOpen: boolean) => {
      // The person reads from the opened line on: do not pull them to the end.
      isPinned.current = false;
      onFold(key, isOpen);
    },
    [onFold],
  );
  const jumpToEnd = () => {
    isPinned.current = true;
    lastScrollTop.current = 0;
    setIsAtEnd(true);
    scrollToEndIfPinned();
  };
  // Who writes wants to see it, and what comes of it.
  const shownSent = useRef(sent);
  useLayoutEffect(() => {
    if (sent !== undefined && sent !== shownSent.current) jumpToEnd();
    shownSent.current = sent ?? shownSent.current;
  }, [sent]);
  const [hasEarlier, firstRow] = [items[0]?.kind === "earlier", items.find((item) => item.kind === "row")?.key];
  // Where the person reads: a row in view, and its distance from the top edge. Not the first row: it may lose its name or its day to what comes above.
  const anchor = useRef<{ key: React.Key; delta: number } | null>(null);
  const noteAnchor = () => {
    const [element, known] = [scroller.current, virtualizer.measurementsCache];
    const start = element && virtualizer.getVirtualItemForOffset(element.scrollTop)?.index;
    if (!element || start == null || isPinned.current) return;
    const isSettling = settlingFrames.current > 0;
    const isSeen = (index: number) => known[index] !== undefined && known[index].start < element.scrollTop + element.clientHeight;
    let found: number | undefined;
    for (let index = start; isSeen(index); index++) {
      if (items[index]?.kind !== "row") continue;
      found ??= index;
      if (isSettling ? items[index]!.key === anchor.current?.key : items[index]!.key !== firstRow) {
        found = index;
        break;
      }
    }
    anchor.current = found === undefined ? null : { key: known[found]!.key, delta: known[found]!.start - element.scrollTop };
  };
  // The virtualizer itself keeps the topmost item in place, which may be the button or the day above all rows. The
  // browser's own scroll anchoring is off (overflow-anchor: none below): it does not work with absolutely positioned rows.
  const shownFirst = useRef(firstRow);
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    if (shownFirst.current === firstRow) return;
    shownFirst.current = firstRow;
    settlingFrames.current = SETTLING_FRAMES;
    holdAnchor();
    redraw((n) => n + 1);
    const countDown = () => void (--settlingFrames.current > 0 && requestAnimationFrame(countDown));
    requestAnimationFrame(countDown);
  }, [items, firstRow]);
  const loadEarlier = useCallback(async () => {
    if (isLoading) return;
    setIsLoading(true);
    try {
      await Promise.all([loadOlderMessages(agent.id), live.loadOlder(team.id)]);
    } finally {
      setIsLoading(false);
    }
  }, [isLoading, agent.id, team.id]);
  // Who scrolls up reads on. What is loaded may be folded into one line, so that there is nothing new to scroll to: then load more, up to a limit.
  const pagesAhead = useRef(0);
  const loadAhead = useCallback(() => {
    const element = scroller.current;
    if (!element || isPinned.current || !hasEarlier || isLoading || element.scrollTop > AHEAD_PX || pagesAhead.current >= MAX_PAGES_AHEAD) return;
    pagesAhead.current++;
    // A failure shows the button again.
    loadEarlier().catch(() => undefined);
  }, [hasEarlier, isLoading, loadEarlier]);
  useEffect(loadAhead, [loadAhead, items]);

  // What a link names may be far back: load the person's messages up to it, then older events, up to a limit.
  const search = useRef({ at: "", hasMessages: false, pages: 0, isReported: false });
  useEffect(() => {
    if (at === undefined || scrolledTo.current === at || isLoading) return;
    if (search.current.at !== at) search.current = { at, hasMessages: !at.startsWith("msg_"), pages: 0, isReported: false };
    const state = search.current;
    if (!state.hasMessages) {
      state.hasMessages = true;
      setIsLoading(true);
      loadMessagesUntil(agent.id, at).then(() => setIsLoading(false), () => setIsLoading(false));
    } else if (hasEarlier && state.pages < MAX_SEARCHED_PAGES) {
      state.pages++;
      void loadEarlier();
    } else if (!state.isReported) {
      state.isReported = true;
      showNote("The message that the link names is not in this conversation. It may be in that of another member.", true);
    }
  }, [at, items, hasEarlier, isLoading, loadEarlier, agent.id]);

  const onScroll = () => {
    if (!scroller.current) return;
    pagesAhead.current = 0;
    setIsAtEnd(updatePinned(scroller.current));
    noteAnchor();
    loadAhead();
  };
  // A layout effect runs before the paint, so the person does not see the list at the wrong position.
  useLayoutEffect(() => {
    scrollToEndIfPinned();
    // Opening a folded line moves the end away without a scroll event.
    if (scroller.current && !isPinned.current) setIsAtEnd(updatePinned(scroller.current));
  }, [count]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(scrollToEndIfPinned);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (isAtEnd) setSeenKey(items.at(-1)?.key);
  }, [isAtEnd, items]);
  useMarkRead(agent, messages, isAtEnd);

  const newCount = useMemo(() => {
    const seenAt = seenKey === undefined ? items.length - 1 : items.findLastIndex((item) => item.key === seenKey);
    return seenAt < 0 ? 0 : items.length - 1 - seenAt;
  }, [items, seenKey]);
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={scroller} id="thread" onScroll={onScroll} role="log" aria-live="off" aria-label={`Conversation with ${agent.name}`} tabIndex={0} className="scroll h-full bg-canvas outline-offset-[-2px] [overflow-anchor:none]">
        <div ref={virtualizer.containerRef} className="relative w-full">
          {virtualizer.getVirtualItems().map((virtualItem) => {
            const item = items[virtualItem.index];
            return (
              <div key={virtualItem.key} data-index={virtualItem.index} data-found={item && isAt(item, at) ? "" : undefined} ref={virtualizer.measureElement} className="absolute inset-x-0 top-0">
                {item === undefined || item.kind === "mate" ? (
                  <TailItem of={item ?? tail[virtualItem.index - items.length]!} agentId={agent.id} rows={rows} />
                ) : item.kind === "folded" && item === liveFold ? (
                  <LiveRow agentId={agent.id} rows={item.rows} isLive isOpen={item.isOpen} onOpen={(isOpen) => fold(item.key, isOpen)} />
                ) : (
                  <ItemView item={item} isHighlighted={isAt(item, at)} onEarlier={loadEarlier} onFold={fold} isLoading={isLoading} agentId={agent.id} />
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!isAtEnd && (
        <Button className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full shadow-high" id="to-end" onClick={jumpToEnd}>
          {newCount > 0 ? `${newCount} new` : "To the end"} <ArrowDown className="size-3.5" />
        </Button>
      )}
      <MessageAnnouncer messages={messages} agent={agent} />
    </div>
  );
}

function TailItem({ of, agentId, rows }: { of: Tail; agentId: string; rows: readonly Row[] }) {
  if (of.kind === "draft") return <DraftItem threadId={of.threadId} />;
  if (of.kind === "mate") return <MateRow {...of.mate} />;
  return <LiveRow agentId={agentId} rows={NO_ROWS} known={rows} isLive isOpen={false} onOpen={() => undefined} />;
}

/** Whether the item is the row that a link or a search names. */
const isAt = (item: Shown, at: string | undefined): boolean => item.kind === "row" && (item.key === at || (item.row.kind === "message" && item.row.id === at));

/** Return an estimate of a row's height, until the row is measured. A bad estimate makes the scroll bar jump. */
function estimateRowPx(item: Shown | undefined): number {
  if (item?.kind !== "row") return 40;
  if (item.row.kind === "message") return 60 + Math.min(400, item.row.text.length / 3.2);
  return item.row.kind === "text" ? 40 + item.row.text.length / 4 : 30;
}

/** Tell the server that messages were read: the end is in view and the page visible for `READ_DELAY_MS`. */
function useMarkRead(agent: Agent, messages: Message[], isAtEnd: boolean): void {
  const newest = messages.findLast((message) => message.sender === agent.id && message.recipient === HUMAN);
  const isUnread = newest !== undefined && newest.seen_at === null;
  const reportedSeq = useRef(0);
  useEffect(() => {
    if (!isUnread || !isAtEnd || !newest || reportedSeq.current >= newest.seq) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const startTimer = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      timer = setTimeout(() => {
        reportedSeq.current = newest.seq;
        for (const message of messages) if (message.recipient === HUMAN && message.seen_at === null) readHere.add(message.id);
        unwrap(api.PUT("/api/agents/{agent}/read", { params: { path: { agent: agent.id } }, body: { seq: newest.seq } })).then(
          () => {
            void queryClient.invalidateQueries({ queryKey: queryKeys.agents(agent.team_id) });
            void queryClient.invalidateQueries({ queryKey: queryKeys.teams });
          },
          () => void (reportedSeq.current = 0),
        );
      }, READ_DELAY_MS);
    };
    startTimer();
    document.addEventListener("visibilitychange", startTimer);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", startTimer);
    };
  }, [isUnread, isAtEnd, newest, agent.id, agent.team_id, messages]);
}

/** Announces finished messages to screen readers. The list itself has aria-live="off": it would read every tool call and every streamed word. */
function MessageAnnouncer({ messages, agent }: { messages: Message[]; agent: Agent }) {
  const last = messages.at(-1);
  const first = useRef(last?.id);
  const announcement = last && last.id !== first.current && last.sender === agent.id ? `${capitalize(agent.name)} says: ${last.text.slice(0, 300)}` : "";
  return (
    <div dir="auto" role="status" aria-live="polite" className="sr-only">
      {announcement}
    </div>
  );
}
