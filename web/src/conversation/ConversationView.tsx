/** Thread: everything a member said, heard and did, virtual, following the end while the reader is there. */
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, MessageCircle } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useShallow } from "zustand/shallow";
import { type Agent, api, explain, type Message, type Team, unwrap } from "@/api/client";
import { conversationQuery, inboxQuery, keys, loadOlder, queryClient } from "@/api/queries";
import { live, useLive } from "@/live";
import type { Row } from "@/live/log";
import { capital } from "@/lib/format";
import { Button, EmptyState, Loading, Trouble } from "@/ui";
import { arrange, type Item } from "@/conversation/items";
import { DraftRow, PeopleContext, RowView } from "@/conversation/rows";

const NO_ROWS: Row[] = [];
const AT_END = 80;
const READ_MS = 600;
const MOST_PAGES = 10;

interface Props {
  team: Team;
  agent: Agent;
  agents: Agent[];
  at?: string;
  showTools: boolean;
  openTools: boolean;
  isCoordinator: boolean;
}

export function Thread({ team, agent, agents, at, showTools, openTools, isCoordinator }: Props) {
  const conversation = useQuery(conversationQuery(agent.id));
  const inbox = useQuery(inboxQuery);
  const log = useLive((state) => state.logs[team.id]);
  const isGreeted = useLive((state) => state.epoch !== null);
  const unsent = useLive(useShallow((state) => state.unsent.filter((one) => one.agentId === agent.id)));
  const drafts = useLive(useShallow((state) => Object.values(state.drafts).filter((one) => one.agentId === agent.id && one.lane !== "reflection").map((one) => one.threadId)));
  const [trouble, setTrouble] = useState<unknown>(null);
  const hasLog = log !== undefined;
  useEffect(() => {
    // The newest number comes with the greeting; without it nobody knows where the newest page begins.
    if (isGreeted && !hasLog) live.look(team.id, team.coordinator_id).then(() => setTrouble(null), setTrouble);
  }, [isGreeted, hasLog, team.id, team.coordinator_id]);

  const said = conversation.data?.said;
  const firstUnread = useFirstUnread(agent.id, said);
  const rows = log?.threads[agent.id] ?? NO_ROWS;
  const hasEarlier = (conversation.data?.hasMore ?? false) || (log?.first ?? 0) > 1;
  const items = useMemo(() => {
    const details = new Map((inbox.data?.items ?? []).map((item) => [item.message.id, item.message]));
    return arrange({ said: said ?? [], details, rows, unsent, hasEarlier, firstUnread, showTools });
  }, [said, inbox.data, rows, unsent, hasEarlier, firstUnread, showTools]);

  const people = useMemo(() => {
    const joined = agents.toSorted((a, b) => a.created_at.localeCompare(b.created_at));
    const order = new Map(joined.map((one, index) => [one.id, { name: capital(one.name), order: index, isCoordinator: one.id === team.coordinator_id }]));
    return { who: order, team: team.id, titles: log?.nodes ?? {}, answers: log?.answers ?? {}, openTools };
  }, [agents, team.coordinator_id, team.id, log?.nodes, log?.answers, openTools]);

  if (conversation.isError && !said) return <Trouble title="The conversation could not be loaded" detail={explain(conversation.error)} onRetry={() => void conversation.refetch()} />;
  if (trouble !== null && !log) return <Trouble title="The events could not be loaded" detail={explain(trouble)} onRetry={() => void live.look(team.id, team.coordinator_id).then(() => setTrouble(null), setTrouble)} />;
  if (!said || !log) return <Loading className="flex-1" what="Loading the conversation" />;
  return (
    <PeopleContext value={people}>
      {items.length === 0 && drafts.length === 0 ? (
        <div className="min-h-0 flex-1">
          <EmptyState icon={<MessageCircle />} title={`Nothing said yet`}>
            {isCoordinator
              ? "The coordinator plans, hires and reports here. Write to it whenever you like; it answers while the work continues."
              : `What ${capital(agent.name)} does and says appears here. A message goes straight to it.`}
          </EmptyState>
        </div>
      ) : (
        <Scroller key={agent.id} items={items} drafts={drafts} at={at} team={team} agent={agent} said={said} />
      )}
    </PeopleContext>
  );
}

/** Where "New" stands: the first unread message when the person came, until they leave. */
function useFirstUnread(agentId: string, said: Message[] | undefined): string | null {
  const [first, setFirst] = useState<string | null>(null);
  const settled = useRef(false);
  useEffect(() => {
    if (settled.current || !said) return;
    settled.current = true;
    const index = said.findIndex((message) => message.sender === agentId && message.recipient === "human" && message.seen_at === null);
    if (index > 0) setFirst(said[index]!.id);
  }, [agentId, said]);
  return first;
}

function Scroller({ items, drafts, at, team, agent, said }: { items: Item[]; drafts: string[]; at?: string; team: Team; agent: Agent; said: Message[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [isAtEnd, setIsAtEnd] = useState(true);
  const [seenKey, setSeenKey] = useState<string | undefined>();
  const [isLoading, setIsLoading] = useState(false);
  const count = items.length + drafts.length;
  // A new function here makes the virtualizer reckon all rows anew.
  const keyOf = useCallback((index: number) => items[index]?.key ?? `draft ${drafts[index - items.length]}`, [items, drafts]);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: (index) => estimate(items[index]),
    getItemKey: keyOf,
    overscan: 8,
    anchorTo: "end",
    paddingStart: 12,
    paddingEnd: 16,
    // Rows are moved as layers: when one above turns out taller than thought, nothing is painted again.
    directDomUpdates: true,
    // What comes into sight is drawn ahead, so it can wait for the next picture with everything else.
    useFlushSync: false,
    onChange: (now) => {
      if (now.getTotalSize() !== size.current) keepEnd();
      size.current = now.getTotalSize();
    },
  });

  // Whoever reads at the end stays there, however tall what comes turns out to be; only scrolling up lets go.
  const pinned = useRef(at === undefined);
  const size = useRef(0);
  const top = useRef(0);
  const look = (element: HTMLElement): boolean => {
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    const moved = element.scrollTop - top.current;
    if (left < 2 || (left < AT_END && moved > 0)) pinned.current = true;
    else if (moved < -2) pinned.current = false;
    top.current = element.scrollTop;
    return left < AT_END || pinned.current;
  };
  const keepEnd = () => {
    const element = box.current;
    // Somebody may have scrolled since, of which the page has not heard yet.
    if (!element || !pinned.current) return;
    look(element);
    if (!pinned.current) return;
    element.scrollTop = element.scrollHeight;
  };
  // Begin at the end; or at the message the address names.
  const arrived = useRef<string | null>(null);
  useLayoutEffect(() => {
    const goal = at ?? "end";
    if (arrived.current === goal) return;
    const index = at ? items.findIndex((item) => item.kind === "row" && (item.key === at || (item.row.kind === "message" && item.row.id === at))) : count - 1;
    if (index < 0) return;
    arrived.current = goal;
    if (!at) return;
    pinned.current = false;
    requestAnimationFrame(() => virtual.scrollToIndex(index, { align: "center" }));
  }, [at, items, count, virtual]);

  const toEnd = () => {
    pinned.current = true;
    top.current = 0;
    setIsAtEnd(true);
    keepEnd();
  };
  const anchor = useRef<{ key: React.Key; delta: number } | null>(null);
  const firstRow = useRef(items.findIndex((item) => item.kind === "row"));
  const loadEarlier = useCallback(async () => {
    if (isLoading) return;
    setIsLoading(true);
    const seen = virtual.getVirtualItems().find((place) => items[place.index]?.kind === "row");
    if (seen) anchor.current = { key: seen.key, delta: seen.start - (box.current?.scrollTop ?? 0) };
    try {
      await Promise.all([loadOlder(agent.id), live.older(team.id)]);
    } finally {
      setIsLoading(false);
    }
  }, [isLoading, agent.id, team.id, items, virtual]);
  // What was in sight stays where it was when older rows come before it.
  useLayoutEffect(() => {
    const held = anchor.current;
    if (!held || pinned.current) return;
    const index = items.findIndex((item) => item.key === held.key);
    const place = virtual.measurementsCache[index];
    if (index < 0 || !place || index === firstRow.current) return;
    anchor.current = null;
    firstRow.current = items.findIndex((item) => item.kind === "row");
    const to = place.start - held.delta;
    if (box.current) box.current.scrollTop = to;
    requestAnimationFrame(() => virtual.scrollToIndex(index, { align: "start" }));
  }, [items, virtual]);

  // What an address names may be far back: read on until it is there, as far as that is bearable.
  const sought = useRef(0);
  useEffect(() => {
    if (at === undefined || arrived.current === at || items[0]?.kind !== "earlier" || sought.current >= MOST_PAGES) return;
    sought.current++;
    void loadEarlier();
  }, [at, items, loadEarlier]);

  const onScroll = () => {
    if (box.current) setIsAtEnd(look(box.current));
  };
  useLayoutEffect(keepEnd, [count]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(keepEnd);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (isAtEnd) setSeenKey(items.at(-1)?.key);
  }, [isAtEnd, items]);
  useRead(agent, said, isAtEnd);

  const fresh = useMemo(() => {
    const seenAt = seenKey === undefined ? items.length - 1 : items.findLastIndex((item) => item.key === seenKey);
    return seenAt < 0 ? 0 : items.length - 1 - seenAt;
  }, [items, seenKey]);
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={box} id="thread" onScroll={onScroll} role="log" aria-live="off" aria-label={`Conversation with ${agent.name}`} tabIndex={0} className="scroll h-full bg-canvas outline-offset-[-2px] [overflow-anchor:none]">
        <div ref={virtual.containerRef} className="relative w-full">
          {virtual.getVirtualItems().map((place) => {
            const item = items[place.index];
            return (
              <div key={place.key} data-index={place.index} ref={virtual.measureElement} className="absolute inset-x-0 top-0">
                {item ? (
                  <RowView item={item} isMarked={item.kind === "row" && (item.key === at || (item.row.kind === "message" && item.row.id === at))} onEarlier={loadEarlier} isLoading={isLoading} agentId={agent.id} />
                ) : (
                  <DraftRow threadId={drafts[place.index - items.length]!} />
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!isAtEnd && (
        <Button className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full shadow-high" id="to-end" onClick={toEnd}>
          {fresh > 0 ? `${fresh} new` : "To the end"} <ArrowDown className="size-3.5" />
        </Button>
      )}
      <Announcer said={said} agent={agent} />
    </div>
  );
}

function estimate(item: Item | undefined): number {
  if (item?.kind !== "row") return 40;
  if (item.row.kind === "message") return 60 + Math.min(400, item.row.text.length / 3.2);
  return item.row.kind === "said" ? 40 + item.row.text.length / 4 : 30;
}

/** Tells the server how far the person has read: at the end, page visible, for a moment. */
function useRead(agent: Agent, said: Message[], isAtEnd: boolean): void {
  const newest = said.findLast((message) => message.sender === agent.id && message.recipient === "human");
  const isUnread = newest !== undefined && newest.seen_at === null;
  const told = useRef(0);
  useEffect(() => {
    if (!isUnread || !isAtEnd || !newest || told.current >= newest.seq) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      timer = setTimeout(() => {
        told.current = newest.seq;
        unwrap(api.PUT("/api/agents/{agent}/read", { params: { path: { agent: agent.id } }, body: { seq: newest.seq } })).then(
          () => {
            void queryClient.invalidateQueries({ queryKey: keys.agents(agent.team_id) });
            void queryClient.invalidateQueries({ queryKey: keys.teams });
            void queryClient.invalidateQueries({ queryKey: keys.inbox });
          },
          () => void (told.current = 0),
        );
      }, READ_MS);
    };
    begin();
    document.addEventListener("visibilitychange", begin);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", begin);
    };
  }, [isUnread, isAtEnd, newest, agent.id, agent.team_id]);
}

/** One polite voice for finished messages; the log itself would never be silent. */
function Announcer({ said, agent }: { said: Message[]; agent: Agent }) {
  const last = said.at(-1);
  const first = useRef(last?.id);
  const words = last && last.id !== first.current && last.sender === agent.id ? `${capital(agent.name)} says: ${last.text.slice(0, 300)}` : "";
  return (
    <div role="status" aria-live="polite" className="sr-only">
      {words}
    </div>
  );
}
