/** TeamList: all teams, as a list that renders only its visible rows. It is one Tab stop; the arrow keys move in it. */
import { Link } from "@tanstack/react-router";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { BellOff, ChevronRight, Pin } from "lucide-react";
import { type KeyboardEvent, memo, useCallback, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { TeamOverview } from "@/api/client";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { isMuted } from "@/lib/quiet";
import { WaitingBadge } from "@/parts/WaitingBadge";
import { currentStyle, rowStyle } from "@/shell/rowStyle";
import { keepOrder, type SidebarRow, sidebarRows, sortTeams } from "@/shell/sidebarRows";
import { useShell } from "@/parts/shellState";
import { StateIcon } from "@/parts/StateIcon";

/** Return the rows of the list as the person sees it. While the pointer or the focus is in the list, or a menu is open, its order stays. */
function useRows(teams: TeamOverview[], current: string | undefined, isHeld: boolean): SidebarRow[] {
  const { pinned, teamFilter, showsFinished } = useShell();
  const order = useRef<string[]>([]);
  return useMemo(() => {
    const sorted = sortTeams(teams, pinned);
    const isMenuOpen = document.querySelector("[role=menu]") !== null;
    const ordered = isHeld || isMenuOpen ? keepOrder(sorted, order.current) : sorted;
    order.current = ordered.map((team) => team.id);
    return sidebarRows(ordered, { current, pinned, filter: teamFilter, showsFinished });
  }, [teams, pinned, teamFilter, showsFinished, current, isHeld]);
}

export default function TeamList({ teams, pathname }: { teams: TeamOverview[]; pathname: string }) {
  const current = /^\/t\/([^/]+)/.exec(pathname)?.[1];
  const [isHeld, setIsHeld] = useState(false);
  const [active, setActive] = useState<string | undefined>();
  const rows = useRows(teams, current, isHeld);
  const scroller = useRef<HTMLDivElement>(null);
  const mustFocus = useRef(false);
  const rowPx = matchMedia("(pointer: coarse)").matches ? 44 : 32;
  const currentIndex = indexOfKey(rows, current);
  const activeIndex = indexOfKey(rows, active) ?? currentIndex ?? 0;
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    getItemKey: (index) => rows[index]!.key,
    overscan: 6,
    paddingEnd: 12,
    // Rows are rendered ahead of the visible part, so a synchronous render on each scroll event is not needed.
    useFlushSync: false,
    // The row that takes the focus is always rendered: otherwise Tab would skip the list once it is scrolled away.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), activeIndex])].filter((index) => index < rows.length).sort((one, other) => one - other),
  });

  // The team that is open stays in sight: when it is opened, also once a new one is in the list, and when the list changes its order. A person who has scrolled it away is not pulled back.
  const shown = useRef<string | undefined>(undefined);
  const isInSight = useRef(true);
  const noteSight = () => {
    const { clientHeight = 0, scrollTop = 0 } = scroller.current ?? {};
    const top = (currentIndex ?? 0) * rowPx;
    isInSight.current = currentIndex !== undefined && top + rowPx > scrollTop && top < scrollTop + clientHeight;
  };
  useLayoutEffect(() => {
    if (currentIndex === undefined || (current === shown.current && !isInSight.current)) return;
    shown.current = current;
    virtualizer.scrollToIndex(currentIndex, { align: "auto" });
  }, [current, currentIndex, virtualizer]);
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
  const update = useShell((state) => state.update);
  const onFold = useCallback((showsFinished: boolean) => update({ showsFinished }), [update]);
  const rowOf = (target: EventTarget) => Number((target as HTMLElement).closest<HTMLElement>("[data-index]")?.dataset.index);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const index = rowOf(event.target);
    const row = rows[index];
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const steps: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 };
    if (event.key in steps) moveTo(steps[event.key]!);
    else if (row.kind === "finished" && (event.key === "ArrowRight" || event.key === "ArrowLeft")) onFold(event.key === "ArrowRight");
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={scroller}
      className="scroll min-h-0 flex-1 px-2"
      onScroll={noteSight}
      onKeyDown={onKeyDown}
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
      onFocus={(event) => {
        const focused = rows[rowOf(event.target)];
        if (focused) setActive(focused.key);
        setIsHeld(true);
      }}
      onBlur={() => setIsHeld(false)}
    >
      {rows.length === 0 && <p role="status" className="px-2 py-2 text-sm text-ink-3">No team or member has this name.</p>}
      <div role="list" aria-label="Teams" className="relative" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const row = rows[item.index]!;
          const tabIndex = item.index === activeIndex ? 0 : -1;
          return (
            <div key={item.key} role="listitem" aria-setsize={rows.length} aria-posinset={item.index + 1} data-index={item.index} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${item.start}px)`, height: item.size }}>
              {row.kind === "team" ? <TeamRow row={row} isCurrent={row.key === current} tabIndex={tabIndex} /> : <FinishedRow row={row} tabIndex={tabIndex} onFold={onFold} />}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function indexOfKey(rows: SidebarRow[], key: string | undefined): number | undefined {
  const index = rows.findIndex((row) => row.key === key);
  return index < 0 ? undefined : index;
}

type RowOf<Kind extends SidebarRow["kind"]> = Extract<SidebarRow, { kind: Kind }>;

const TeamRow = memo(function TeamRow({ row, isCurrent, tabIndex }: { row: RowOf<"team">; isCurrent: boolean; tabIndex: number }) {
  const { team, isPinned } = row;
  const pin = useShell((state) => state.pin);
  const stateId = useId();
  return (
    <div className={cx("group relative flex h-8 items-center gap-2.5 rounded-sm px-2.5 hover:bg-hover pointer-coarse:h-11", isCurrent && currentStyle)}>
      <StateIcon state={team.state} id={stateId} />
      <Link
        data-nav
        tabIndex={tabIndex}
        to={(team.coordinator_id ? `/t/${team.id}/a/${team.coordinator_id}` : `/t/${team.id}`) as "/"}
        aria-current={isCurrent ? "true" : undefined}
        aria-describedby={stateId}
        title={team.name}
        // The whole row is the link; what can be pressed in it lies above.
        className="flex min-w-0 flex-1 items-center gap-1.5 self-stretch rounded-sm text-sm before:absolute before:inset-0 before:rounded-sm"
      >
        <span className={cx("truncate", (isCurrent || team.open_questions > 0 || team.unread > 0) && "font-semibold")} dir="auto">
          {team.name}
        </span>
        {team.trust !== "standard" && (
          <span className={cx("text-xs font-normal", team.trust === "open" ? "text-fail" : "text-ink-3")} title="Trust">
            {team.trust}
          </span>
        )}
        {isMuted(team, new Date()) && <BellOff role="img" aria-label="Muted" className="size-3.5 shrink-0 text-ink-3" />}
      </Link>
      <button
        type="button"
        tabIndex={tabIndex}
        aria-pressed={isPinned}
        aria-label={isPinned ? `Unpin ${team.name}` : `Pin ${team.name}`}
        title={isPinned ? "Unpin: sort it by its activity again" : "Pin: keep it at the top of the list"}
        onClick={() => pin(team.id, !isPinned)}
        className={cx("relative -mx-1.5 flex size-7 shrink-0 items-center justify-center rounded-sm text-ink-3 hover:text-ink focus-visible:opacity-100 pointer-coarse:size-11", !isPinned && "opacity-0 group-hover:opacity-100 group-focus-within:opacity-100 pointer-coarse:opacity-100", !isPinned && !isCurrent && "pointer-coarse:hidden")}
      >
        <Pin className={cx("size-3.5", isPinned && "fill-current")} aria-hidden />
      </button>
      <WaitingBadge questions={team.open_questions} unread={team.unread} />
    </div>
  );
});

const FinishedRow = memo(function FinishedRow({ row, tabIndex, onFold }: { row: RowOf<"finished">; tabIndex: number; onFold: (isOpen: boolean) => void }) {
  return (
    <button data-nav type="button" tabIndex={tabIndex} aria-expanded={row.isOpen} onClick={() => onFold(!row.isOpen)} className={cx(rowStyle, "text-xs text-ink-3")}>
      <ChevronRight className={cx("size-4 shrink-0 transition-transform", row.isOpen && "rotate-90")} aria-hidden />
      {plural(row.count, "finished team")}
    </button>
  );
});
