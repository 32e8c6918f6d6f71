/** TeamList: all teams with their members, as a list that renders only its visible rows. It is one Tab stop; the arrow keys move in it. */
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { BellOff, ChevronRight, Pin } from "lucide-react";
import { type KeyboardEvent, memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Agent, TeamOverview } from "@/api/client";
import { agentsQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { isMuted } from "@/lib/quiet";
import { WaitingBadge } from "@/shell/WaitingBadge";
import { StatusDot, type AgentStatus } from "@/ui";
import { currentStyle, rowStyle } from "@/shell/rowStyle";
import { keepOrder, type SidebarRow, sidebarRows, sortTeams } from "@/shell/sidebarRows";
import { shownStatus, useIsStopped } from "@/parts/serverQueries";
import { useShell } from "@/parts/shellState";
import { TEAM_STATES } from "@/parts/teamState";
import type { Tone } from "@/lib/endings";
import { SCREENS } from "@/views";

interface Place {
  pathname: string;
  team: string | undefined;
}

/** Return the rows of the list as the person sees it. While the pointer or the focus is in the list, or a menu is open, its order stays. */
function useRows(teams: TeamOverview[], place: Place, isHeld: boolean, unfolded: string[]): SidebarRow[] {
  const { pinned, collapsed, teamFilter, showsFinished } = useShell();
  const order = useRef<string[]>([]);
  const former = useQueries({
    queries: unfolded.map((team) => agentsQuery(team)),
    combine: (results) => Object.fromEntries(unfolded.map((team, index) => [team, (results[index]?.data ?? []).filter((agent: Agent) => agent.retired_at !== null)])),
  });
  return useMemo(() => {
    const sorted = sortTeams(teams, pinned);
    const isMenuOpen = document.querySelector("[role=menu]") !== null;
    const ordered = isHeld || isMenuOpen ? keepOrder(sorted, order.current) : sorted;
    order.current = ordered.map((team) => team.id);
    return sidebarRows(ordered, { current: place.team, pinned, collapsed, filter: teamFilter, showsFinished, former });
  }, [teams, pinned, collapsed, teamFilter, showsFinished, former, place.team, isHeld]);
}

const rowPx = (row: SidebarRow | undefined, isTouch: boolean): number => (row?.kind === "screens" ? (isTouch ? 88 : 62) : isTouch ? 44 : 32);

export default function TeamList({ teams, pathname }: { teams: TeamOverview[]; pathname: string }) {
  const place = { pathname, team: /^\/t\/([^/]+)/.exec(pathname)?.[1] };
  const [unfolded, setUnfolded] = useState<string[]>([]);
  const [isHeld, setIsHeld] = useState(false);
  const [active, setActive] = useState<string | undefined>();
  const rows = useRows(teams, place, isHeld, unfolded);
  const scroller = useRef<HTMLDivElement>(null);
  const mustFocus = useRef(false);
  const isTouch = matchMedia("(pointer: coarse)").matches;
  const openKey = openRowKey(rows, place);
  const activeIndex = Math.max(0, indexOfKey(rows, active) ?? indexOfKey(rows, openKey) ?? 0);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => rowPx(rows[index], isTouch),
    getItemKey: (index) => rows[index]!.key,
    overscan: 6,
    paddingEnd: 12,
    // Rows are rendered ahead of the visible part, so a synchronous render on each scroll event is not needed.
    useFlushSync: false,
    // The row that takes the focus is always rendered: otherwise Tab would skip the list once it is scrolled away.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), activeIndex])].filter((index) => index < rows.length).sort((one, other) => one - other),
  });

  // Scroll to the page that was opened: also to a team that was just created, once it is in the list.
  const shownKey = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    if (openKey === undefined || openKey === shownKey.current) return;
    shownKey.current = openKey;
    const index = indexOfKey(rows, openKey) ?? 0;
    const isAbove = index <= (virtualizer.range?.startIndex ?? 0);
    // Above the visible part, go to the team's name: with the member at the top edge, nobody would see whose member it is.
    virtualizer.scrollToIndex(isAbove ? (indexOfKey(rows, place.team) ?? index) : index, { align: "auto" });
  }, [openKey, rows, virtualizer, place.team]);
  useLayoutEffect(() => {
    if (!mustFocus.current) return;
    mustFocus.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${activeIndex}"] [data-nav]`)?.focus();
  });

  const moveTo = (index: number) => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    if (!row) return;
    mustFocus.current = true;
    setActive(row.key);
    virtualizer.scrollToIndex(rows.indexOf(row), { align: "auto" });
  };
  const { collapse, update } = useShell();
  const setFolded = (row: SidebarRow, isFolded: boolean) => {
    if (row.kind === "team") collapse(row.team.id, isFolded);
    if (row.kind === "finished") update({ showsFinished: !isFolded });
    if (row.kind === "former") setUnfolded(isFolded ? unfolded.filter((team) => team !== row.team.id) : [...unfolded, row.team.id]);
  };
  const latestFold = useRef(setFolded);
  latestFold.current = setFolded;
  // Rows are rendered again only when they change: this function must stay the same while the list is scrolled.
  const onFold = useCallback((row: SidebarRow, isFolded: boolean) => latestFold.current(row, isFolded), []);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const index = Number((event.target as HTMLElement).closest<HTMLElement>("[data-index]")?.dataset.index);
    const row = rows[index];
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const steps: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 };
    const isFoldable = "isOpen" in row;
    if (event.key in steps) moveTo(steps[event.key]!);
    else if (event.key === "ArrowRight" && isFoldable) row.isOpen ? moveTo(index + 1) : setFolded(row, false);
    else if (event.key === "ArrowLeft" && isFoldable && row.isOpen) setFolded(row, true);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") moveWithin(event, row, () => moveTo(indexOfKey(rows, "team" in row ? row.team.id : undefined) ?? index));
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={scroller}
      className="scroll min-h-0 flex-1 px-2"
      onKeyDown={onKeyDown}
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
      onFocus={(event) => {
        const focused = rows[Number((event.target as HTMLElement).closest<HTMLElement>("[data-index]")?.dataset.index)];
        if (focused) setActive(focused.key);
        setIsHeld(true);
      }}
      onBlur={() => setIsHeld(false)}
    >
      {rows.length === 0 && <p role="status" className="px-2 py-2 text-sm text-ink-3">No team or member has this name.</p>}
      <div role="list" aria-label="Teams and members" className="relative" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const row = rows[item.index]!;
          return (
            <div
              key={item.key}
              role="listitem"
              aria-setsize={rows.length}
              aria-posinset={item.index + 1}
              data-index={item.index}
              ref={virtualizer.measureElement}
              className={cx("absolute inset-x-0 top-0", row.kind === "team" && item.index > 0 && row.isOpen && "pt-2")}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Row row={row} pathname={pathname} tabIndex={item.index === activeIndex ? 0 : -1} onFold={onFold} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const indexOfKey = (rows: SidebarRow[], key: string | undefined): number | undefined => {
  const index = key === undefined ? -1 : rows.findIndex((row) => row.key === key);
  return index < 0 ? undefined : index;
};

/** Return the row of the page that is open: the member, or the team if the member is not in the list. */
function openRowKey(rows: SidebarRow[], { pathname, team }: Place): string | undefined {
  const agent = /^\/t\/[^/]+\/a\/([^/]+)/.exec(pathname)?.[1];
  return [agent, team && !agent ? `${team} screens` : undefined, team].find((key) => indexOfKey(rows, key) !== undefined);
}

/** Move the focus to the next or previous link of the same row; before the first one, leave the row. */
function moveWithin(event: KeyboardEvent<HTMLElement>, row: SidebarRow, leave: () => void): void {
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>(`[data-index="${(event.target as HTMLElement).closest<HTMLElement>("[data-index]")?.dataset.index}"] [data-nav]`)];
  const next = links.indexOf(event.target as HTMLElement) + (event.key === "ArrowRight" ? 1 : -1);
  if (row.kind === "screens" && links[next]) links[next].focus();
  else if (event.key === "ArrowLeft") leave();
}

interface RowProps<Kind extends SidebarRow["kind"]> {
  row: Extract<SidebarRow, { kind: Kind }>;
  pathname: string;
  tabIndex: number;
  onFold: (row: SidebarRow, isFolded: boolean) => void;
}

const Row = memo(function Row(props: RowProps<SidebarRow["kind"]>) {
  const { row, ...rest } = props;
  switch (row.kind) {
    case "team":
      return <TeamRow row={row} {...rest} />;
    case "member":
      return <MemberRow row={row} {...rest} />;
    case "screens":
      return <ScreensRow row={row} {...rest} />;
    case "former":
      return <FoldRow row={row} {...rest} label={plural(row.team.former_members, "former member")} />;
    case "finished":
      return <FoldRow row={row} {...rest} label={plural(row.count, "finished team")} />;
  }
});

const STATE_STYLES: Record<Tone, string> = { plain: "text-ink-3", work: "text-work", done: "text-ink-3", wait: "text-wait", fail: "text-fail" };

function TeamRow({ row, tabIndex, onFold }: RowProps<"team">) {
  const { team, isOpen, isPinned } = row;
  const pin = useShell((state) => state.pin);
  return (
    <div className="group flex h-8 items-center rounded-sm pr-2.5 hover:bg-hover pointer-coarse:h-11">
      <button
        type="button"
        tabIndex={-1}
        aria-expanded={isOpen}
        aria-label={`Members of ${team.name}`}
        onClick={() => onFold(row, isOpen)}
        className="flex w-7 shrink-0 items-center justify-center self-stretch rounded-sm pointer-coarse:w-10"
      >
        <ChevronRight className={cx("size-3.5 text-ink-3 transition-transform", isOpen && "rotate-90")} aria-hidden />
      </button>
      <Link data-nav tabIndex={tabIndex} to={(team.coordinator_id ? `/t/${team.id}/a/${team.coordinator_id}` : `/t/${team.id}`) as "/"} className="flex min-w-0 flex-1 items-center gap-1.5 self-stretch rounded-sm text-sm font-semibold" title={team.name}>
        <span className="truncate" dir="auto">
          {team.name}
        </span>
        {team.trust !== "standard" && (
          <span className={cx("text-xs font-normal", team.trust === "open" ? "text-fail" : "text-ink-3")} title="Trust">
            {team.trust}
          </span>
        )}
        {isMuted(team, new Date()) && <BellOff role="img" aria-label="Muted" className="size-3.5 shrink-0 text-ink-3" />}
      </Link>
      <span className={cx("ml-1.5 shrink-0 text-xs", STATE_STYLES[TEAM_STATES[team.state].tone])}>{TEAM_STATES[team.state].label}</span>
      <button
        type="button"
        tabIndex={tabIndex}
        aria-pressed={isPinned}
        aria-label={isPinned ? `Unpin ${team.name}` : `Pin ${team.name}`}
        title={isPinned ? "Unpin: sort it by its activity again" : "Pin: keep it at the top of the list"}
        onClick={() => pin(team.id, !isPinned)}
        className={cx("flex size-7 shrink-0 items-center justify-center rounded-sm text-ink-3 hover:text-ink focus-visible:opacity-100 pointer-coarse:size-11", !isPinned && "opacity-0 group-hover:opacity-100 group-focus-within:opacity-100 pointer-coarse:opacity-100", !isPinned && !isOpen && "pointer-coarse:hidden")}
      >
        <Pin className={cx("size-3.5", isPinned && "fill-current")} aria-hidden />
      </button>
      {!isOpen && <WaitingBadge questions={team.open_questions} unread={team.unread} />}
      {team.usd > 0 && <span className="tabular ml-1.5 text-xs text-ink-3">{money(team.usd)}</span>}
    </div>
  );
}

function MemberRow({ row, pathname, tabIndex }: RowProps<"member">) {
  const { member, team, isFormer } = row;
  const isCurrent = pathname === `/t/${team.id}/a/${member.id}`;
  const isStopped = useIsStopped();
  const unread = isCurrent ? 0 : member.unread;
  return (
    <Link
      data-nav
      tabIndex={tabIndex}
      to="/t/$team/a/$agent"
      params={{ team: team.id, agent: member.id }}
      aria-current={isCurrent ? "page" : undefined}
      className={cx(rowStyle, isCurrent && currentStyle, isFormer && "text-ink-3")}
    >
      <StatusDot status={shownStatus(member.status as AgentStatus, isStopped)} />
      <span className="min-w-0 flex-1 truncate" dir="auto">
        <span className={cx((member.questions > 0 || unread > 0) && "font-semibold")}>{capitalize(member.name)}</span>
        {!["coordinator", "worker", "", member.name].includes(member.role) && <span className="ml-2 text-xs font-normal text-ink-3">{member.role}</span>}
      </span>
      <WaitingBadge questions={member.questions} unread={unread} />
    </Link>
  );
}

function ScreensRow({ row, pathname, tabIndex }: RowProps<"screens">) {
  const here = `/t/${row.team.id}`;
  const screens = SCREENS.filter((screen) => screen.isListed);
  const isAt = (path: string) => pathname === `${here}/${path}` || pathname.startsWith(`${here}/${path}/`);
  const current = Math.max(0, screens.findIndex((screen) => isAt(screen.path)));
  return (
    <div className="flex flex-wrap items-center pb-1 pl-[26px]">
      {screens.map((screen, index) => (
        <Link
          key={screen.path}
          data-nav
          tabIndex={index === current ? tabIndex : -1}
          to={`${here}/${screen.path}` as "/"}
          aria-current={isAt(screen.path) ? "page" : undefined}
          className={cx(
            "flex h-7 items-center rounded-sm px-2 text-xs base:text-ink-2 hover:text-ink pointer-coarse:h-11",
            isAt(screen.path) ? "bg-press font-medium text-ink" : "hover:bg-hover",
          )}
        >
          {screen.label}
        </Link>
      ))}
    </div>
  );
}

function FoldRow({ row, label, tabIndex, onFold }: RowProps<"former" | "finished"> & { label: string }) {
  return (
    <button data-nav type="button" tabIndex={tabIndex} aria-expanded={row.isOpen} onClick={() => onFold(row, row.isOpen)} className={cx(rowStyle, "gap-1.5 text-xs text-ink-3", row.kind === "former" ? "pl-2.5" : "pl-1.5")}>
      <ChevronRight className={cx("size-3.5 shrink-0 transition-transform", row.isOpen && "rotate-90")} aria-hidden />
      {label}
    </button>
  );
}
