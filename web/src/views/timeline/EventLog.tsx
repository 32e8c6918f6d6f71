/** EventLog: every stored event of a team, newest first, with filters. Rows are drawn only where they are visible. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Range, useVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight, Copy, X } from "lucide-react";
import { type FocusEvent, type KeyboardEvent, memo, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { api, errorMessage, type Team, unwrap } from "@/api/client";
import { agentsQuery, boardQuery } from "@/api/queries";
import { copyText } from "@/lib/clipboard";
import { cx } from "@/lib/cx";
import { capitalize, clockTimeWithSeconds, dayKey, dayLabel, fullTime, plural } from "@/lib/format";
import { rowsInGroups, withRow } from "@/lib/rowGroups";
import { useLive } from "@/live";
import type { Event } from "@/live/log";
import { Button, EmptyState, ErrorPanel, IconButton, Input, Loading } from "@/ui";
import { screenHref } from "@/lib/screens";
import { useNarrow } from "@/parts/useNarrow";
import { useSearchParams } from "@/parts/useSearchParams";
import { agentOf, describeEvent, KINDS, type Names, nodeOf, placeOf } from "@/views/timeline/describeEvent";

const EVENTS_PER_PAGE = 200;
/** How far the Page keys move. */
const PAGE_ROWS = 15;
const SELECT = "h-8 rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11";
/** A `datetime-local` value is in the reader's zone and has none written down. */
const withZone = (local: string | undefined): string | undefined => (local && !Number.isNaN(Date.parse(local)) ? new Date(local).toISOString() : undefined);

export default function EventLog({ team }: { team: Team }) {
  const [params, setParams] = useSearchParams();
  const isPhone = useNarrow(768);
  const [hasMoreFilters, setHasMoreFilters] = useState(false);
  const [typed, setTyped] = useState(params.text ?? "");
  const text = useDeferredValue(typed.trim());
  const agents = useQuery(agentsQuery(team.id));
  const board = useQuery(boardQuery(team.id));
  const types = KINDS.find(([name]) => name === (params.kind ?? ""))?.[2] ?? "";
  const query = { types, agent: params.agent ?? "", node: params.node ?? "", text, since: withZone(params.from), until: withZone(params.to), limit: EVENTS_PER_PAGE };
  const log = useInfiniteQuery({
    queryKey: ["event-log", team.id, query],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/teams/{team}/event-log", { params: { path: { team: team.id }, query: { ...query, before: pageParam } } })),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });
  const names = useMemo((): Names => {
    const byAgent = new Map((agents.data ?? []).map((agent) => [agent.id, capitalize(agent.name)]));
    const byNode = new Map((board.data ?? []).map((node) => [node.id, node.title]));
    return { agent: (id) => byAgent.get(id), node: (id) => byNode.get(id) };
  }, [agents.data, board.data]);
  const assignees = useMemo(() => new Map((board.data ?? []).map((node) => [node.id, node.assignee_id ?? ""])), [board.data]);
  const events = useMemo(() => log.data?.pages.flatMap((page) => page.events as Event[]) ?? [], [log.data]);
  const head = log.data?.pages[0]?.head ?? 0;
  const newCount = useLive((state) => Math.max(0, (state.cursors[team.id] ?? 0) - head));
  const isFiltered = Boolean(types || query.agent || query.node || text || query.since || query.until);

  return (
    <div className="flex h-full flex-col">
      <div role="search" aria-label="Filter events" className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <Input type="search" aria-label="Find in events" placeholder="Find words" value={typed} onChange={(event) => setTyped(event.target.value)} onBlur={() => setParams({ text: typed.trim() || undefined }, true)} className="h-8 w-48 max-md:w-full" />
        <select aria-label="Kind" value={params.kind ?? ""} onChange={(event) => setParams({ kind: event.target.value || undefined }, true)} className={cx(SELECT, "max-w-52 max-md:max-w-none max-md:flex-1")}>
          {KINDS.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <select aria-label="Agent" value={params.agent ?? ""} onChange={(event) => setParams({ agent: event.target.value || undefined }, true)} className={SELECT}>
          <option value="">All agents</option>
          {(agents.data ?? []).map((agent) => (
            <option key={agent.id} value={agent.id}>
              {capitalize(agent.name)}
            </option>
          ))}
        </select>
        {isPhone && (
          <Button size="sm" variant="ghost" aria-expanded={hasMoreFilters} onClick={() => setHasMoreFilters(!hasMoreFilters)}>
            Task and time
          </Button>
        )}
        {(!isPhone || hasMoreFilters) && (
          <>
            <select aria-label="Task" value={params.node ?? ""} onChange={(event) => setParams({ node: event.target.value || undefined }, true)} className={cx(SELECT, "max-w-44")}>
              <option value="">All tasks</option>
              {(board.data ?? []).map((node) => (
                <option key={node.id} value={node.id}>
                  {node.title}
                </option>
              ))}
            </select>
            <label className="flex items-center gap-1.5 text-xs text-ink-2">
              From
              <input type="datetime-local" value={params.from ?? ""} onChange={(event) => setParams({ from: event.target.value || undefined }, true)} className={SELECT} />
            </label>
            <label className="flex items-center gap-1.5 text-xs text-ink-2">
              To
              <input type="datetime-local" value={params.to ?? ""} onChange={(event) => setParams({ to: event.target.value || undefined }, true)} className={SELECT} />
            </label>
          </>
        )}
        {isFiltered && (
          <Button
            size="sm"
            variant="ghost"
            onClick={() => {
              setTyped("");
              setParams({ kind: undefined, agent: undefined, node: undefined, text: undefined, from: undefined, to: undefined }, true);
            }}
          >
            <X aria-hidden className="size-3.5" /> Clear
          </Button>
        )}
      </div>
      <div className="relative min-h-0 flex-1">
        {log.isPending ? (
          <Loading label="Loading events" />
        ) : log.isError && events.length === 0 ? (
          <ErrorPanel title="The events could not be loaded" detail={errorMessage(log.error)} onRetry={() => void log.refetch()} />
        ) : events.length === 0 && !log.hasNextPage ? (
          <EmptyState title={isFiltered ? "No event matches" : "No events yet"}>{isFiltered ? "Change or clear the filters to see other events." : "Everything that this team does is listed here."}</EmptyState>
        ) : (
          <EventRows team={team} events={events} names={names} assignees={assignees} hasMore={log.hasNextPage} isLoading={log.isFetchingNextPage} loadMore={() => void log.fetchNextPage()} />
        )}
        {newCount > 0 && !log.isPending && (
          <Button size="sm" variant="primary" className="absolute top-3 right-4 rounded-full shadow-high" onClick={() => void log.refetch()}>
            {plural(newCount, "new event")}
          </Button>
        )}
      </div>
    </div>
  );
}

interface RowsProps {
  team: Team;
  events: readonly Event[];
  names: Names;
  assignees: ReadonlyMap<string, string>;
  hasMore: boolean;
  isLoading: boolean;
  loadMore: () => void;
}

function EventRows({ team, events, names, assignees, hasMore, isLoading, loadMore }: RowsProps) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const scroller = useRef<HTMLDivElement>(null);
  // The virtualizer computes the positions of all rows again when this function changes, so it must be stable.
  const eventKey = useCallback((index: number) => events[index]!.seq, [events]);
  // The log is one Tab stop, and the arrow keys move from row to row: nobody has to pass hundreds of rows to leave it. The row of
  // the stop is always rendered, also when it is scrolled out of sight, because a removed row would lose the focus.
  const [stopSeq, setStopSeq] = useState<number | null>(null);
  const stop = Math.max(0, events.findIndex((one) => one.seq === stopSeq));
  const rowsToRender = useCallback((range: Range) => withRow(rowsInGroups(range), stop), [stop]);
  const virtualizer = useVirtualizer({ count: events.length, getScrollElement: () => scroller.current, estimateSize: () => 37, getItemKey: eventKey, overscan: 6, rangeExtractor: rowsToRender, directDomUpdates: true, directDomUpdatesMode: "position", useFlushSync: false });
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && !isLoading && last >= events.length - 30) loadMore();
  }, [hasMore, isLoading, last, events.length, loadMore]);

  function onKeyDown(event: KeyboardEvent) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: PAGE_ROWS, PageUp: -PAGE_ROWS, Home: -events.length, End: events.length }[event.key];
    if (!(event.target as HTMLElement).dataset.event || !by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const index = Math.min(events.length - 1, Math.max(0, stop + by));
    const next = events[index]!;
    setStopSeq(next.seq);
    virtualizer.scrollToIndex(index);
    // The row exists only after React has rendered it.
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-event="${next.seq}"]`)?.focus({ preventScroll: true }));
  }
  /** The row that has the focus, or whose details have it, is the Tab stop. */
  function onFocus({ target }: FocusEvent) {
    const row = target.closest("li")?.querySelector<HTMLElement>("[data-event]");
    if (row) setStopSeq(Number(row.dataset.event));
  }
  const toggle = useCallback((seq: number) => setOpen((before) => (before.has(seq) ? new Set([...before].filter((one) => one !== seq)) : new Set([...before, seq]))), []);

  const rendered = items.map((item) => item.index).join();
  const { measureElement } = virtualizer;
  const shown = useMemo(
    () =>
      rendered.split(",").flatMap((at) => {
        const index = Number(at);
        const event = events[index];
        if (!at || !event) return [];
        const above = events[index - 1];
        return (
          <li key={event.seq} ref={measureElement} data-index={index} aria-setsize={hasMore ? -1 : events.length} aria-posinset={index + 1} className="absolute inset-x-0 border-b border-line">
            {(!above || dayKey(above.at) !== dayKey(event.at)) && <p className="bg-sunken px-4 py-1 text-xs font-medium text-ink-2">{dayLabel(event.at)}</p>}
            <EventRow event={event} names={names} agent={names.agent(agentOf(event) || assignees.get(nodeOf(event)) || "") ?? ""} isOpen={open.has(event.seq)} isTabStop={index === stop} onToggle={toggle} />
            {open.has(event.seq) && <EventDetail team={team} event={event} />}
          </li>
        );
      }),
    [events, rendered, stop, hasMore, measureElement, names, assignees, open, toggle, team],
  );

  return (
    // A scroller whose background is opaque is moved by the compositor; another is painted again in each frame.
    <div ref={scroller} id="events" className="scroll h-full bg-canvas" onKeyDown={onKeyDown} onFocus={onFocus} tabIndex={-1}>
      <ul ref={virtualizer.containerRef} aria-label="Events, newest first. The arrow keys move from event to event." className="relative">
        {shown}
      </ul>
      {isLoading && <Loading label="Loading older events" />}
    </div>
  );
}

/** One event. While the log is scrolled, only rows that come into view are rendered. */
const EventRow = memo(function EventRow({ event, names, agent, isOpen, isTabStop, onToggle }: { event: Event; names: Names; agent: string; isOpen: boolean; isTabStop: boolean; onToggle: (seq: number) => void }) {
  return (
    <button
      type="button"
      data-event={event.seq}
      tabIndex={isTabStop ? 0 : -1}
      aria-expanded={isOpen}
      onClick={() => onToggle(event.seq)}
      className="flex min-h-9 w-full items-center gap-3 px-4 py-1 text-left text-sm outline-offset-[-2px] hover:bg-hover pointer-coarse:min-h-11"
    >
      <ChevronRight aria-hidden className={cx("size-3.5 shrink-0 text-ink-3", isOpen && "rotate-90")} />
      <time dateTime={event.at} title={fullTime(event.at)} className="tabular w-[78px] shrink-0 text-xs whitespace-nowrap text-ink-3">
        {clockTimeWithSeconds(event.at)}
      </time>
      <code className={cx("w-[136px] shrink-0 truncate text-xs max-md:hidden", /failed|lost|refused|stalled/.test(event.type) ? "text-fail" : "text-ink-2")}>{event.type}</code>
      <span dir="auto" className="w-28 shrink-0 truncate text-xs text-ink-2 max-md:hidden">
        {agent}
      </span>
      <span className="min-w-0 flex-1 md:flex md:items-baseline md:gap-2">
        <span dir="auto" className="block truncate">
          {describeEvent(event, names)}
        </span>
        <span dir="auto" className="block max-w-60 shrink-0 truncate text-xs text-ink-3 md:ml-auto">
          {names.node(nodeOf(event)) ?? ""}
        </span>
      </span>
    </button>
  );
});

function EventDetail({ team, event }: { team: Team; event: Event }) {
  const [isCopied, setIsCopied] = useState(false);
  const json = JSON.stringify(event, null, 2);
  const place = placeOf(event);
  const href = place && (place.screen === "agent" ? `/t/${team.id}/a/${place.rest}${place.search}` : screenHref(team.id, place.screen, place.rest, place.search));
  return (
    <div className="px-4 pb-3 md:pl-[50px]">
      <div className="mb-1 flex flex-wrap items-center gap-2 text-xs">
        <span className="tabular text-ink-3">Event {event.seq}</span>
        {href && (
          <Link to={href as "/"} className="inline-flex items-center underline underline-offset-2 pointer-coarse:min-h-11">
            {place.label}
          </Link>
        )}
        <Link to={screenHref(team.id, "timeline", "", `?view=replay&seq=${event.seq}`) as "/"} className="inline-flex items-center underline underline-offset-2 pointer-coarse:min-h-11">
          Replay from here
        </Link>
        <IconButton
          label={isCopied ? "Copied" : "Copy as JSON"}
          onClick={() => {
            void copyText(json).then(() => setIsCopied(true));
          }}
        >
          <Copy className="size-3.5" />
        </IconButton>
        <span role="status" className="text-ink-3">
          {isCopied ? "Copied" : ""}
        </span>
      </div>
      <pre dir="ltr" tabIndex={0} aria-label={`Event ${event.seq} as JSON`} className="scroll max-h-80 rounded-md border border-line bg-sunken p-3 text-xs leading-5 whitespace-pre-wrap [overflow-wrap:anywhere]">
        {json}
      </pre>
    </div>
  );
}
