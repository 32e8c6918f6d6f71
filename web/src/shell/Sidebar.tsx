/** Sidebar: the start page and the inbox, then every team. */
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { Activity, Archive, House, Inbox, Moon, Plus, Search, Settings, Sun, X } from "lucide-react";
import { type KeyboardEvent, Suspense, useRef } from "react";
import { errorMessage } from "@/api/client";
import { openQuery, overviewQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { lazyChunk } from "@/live/chunks";
import { IconButton, Kbd, Logo } from "@/ui";
import { ConnectionStatus } from "@/shell/Connection";
import { openPalette } from "@/shell/openPalette";
import { currentStyle, rowStyle } from "@/shell/rowStyle";
import { useShell } from "@/parts/shellState";
import { WaitingBadge } from "@/parts/WaitingBadge";

const TeamList = lazyChunk(() => import("@/shell/TeamList"));
const NoTeams = lazyChunk(() => import("@/shell/NoTeams"));
const NotifyOffer = lazyChunk(() => import("@/shell/NotifyOffer"));
const MODIFIER_KEY = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl ";
/** From this many teams on, the list has a filter. */
const MANY_TEAMS = 8;

export function Sidebar() {
  const { setOpen, theme, update } = useShell();
  const overview = useQuery(overviewQuery);
  const inbox = useQuery(openQuery());
  const unanswered = inbox.data?.open ?? 0;
  const { pathname } = useLocation();
  const list = useRef<HTMLDivElement>(null);
  const teams = overview.data;
  const isDark = document.documentElement.dataset.theme === "dark";
  return (
    <nav aria-label="Teams" className="flex min-h-0 w-full flex-1 flex-col bg-rail">
      <div className="flex h-[52px] shrink-0 items-center gap-2.5 px-3">
        <Link to="/" className="flex flex-1 items-center gap-2.5 text-md font-semibold">
          <span className="flex size-7 items-center justify-center rounded-sm bg-ink text-paper">
            <Logo className="size-[18px]" />
          </span>
          agiraph
        </Link>
        <IconButton label="New team" keys="n" onClick={() => setOpen("newTeam", true)}>
          <Plus className="size-[18px]" />
        </IconButton>
      </div>
      <div className="px-2 pb-2">
        <button
          type="button"
          onClick={openPalette}
          className="flex h-8 w-full items-center gap-2 rounded-sm border border-line-2 bg-surface px-2.5 text-sm text-ink-3 hover:bg-hover pointer-coarse:h-11"
        >
          <Search className="size-4" aria-hidden />
          <span className="flex-1 text-left">Jump to…</span>
          <Kbd className="pointer-coarse:hidden">{MODIFIER_KEY}K</Kbd>
        </button>
        <Link to="/" aria-current={pathname === "/" ? "page" : undefined} className={cx(rowStyle, "mt-2 font-medium", pathname === "/" && currentStyle)}>
          <House className="size-4 text-ink-2" aria-hidden /> Start
        </Link>
        <InboxLink pathname={pathname} unanswered={unanswered} unread={inbox.data?.unread ?? 0} />
        {teams !== undefined && teams.length >= MANY_TEAMS && <TeamFilter onLeave={() => list.current?.querySelector<HTMLElement>("[data-nav][tabindex='0']")?.focus()} />}
      </div>
      {overview.isError && (
        <p role="alert" className="mx-4 my-2 text-xs text-fail">
          {errorMessage(overview.error)}
        </p>
      )}
      <div ref={list} className="flex min-h-0 flex-1 flex-col">
        {teams === undefined ? (
          <LoadingRows isBroken={overview.isError} />
        ) : teams.length > 0 && (
          <Suspense fallback={<LoadingRows isBroken={false} />}>
            <TeamList teams={teams} pathname={pathname} />
          </Suspense>
        )}
        {teams?.length === 0 && (
          <Suspense fallback={null}>
            <NoTeams />
          </Suspense>
        )}
      </div>
      {unanswered > 0 && (
        <Suspense fallback={null}>
          <NotifyOffer />
        </Suspense>
      )}
      <div className="shrink-0 border-t border-line px-2 pt-1">
        <Link to="/operations" aria-current={pathname === "/operations" ? "page" : undefined} className={cx(rowStyle, pathname === "/operations" && currentStyle)}>
          <Activity className="size-4 text-ink-2" aria-hidden /> Operations
        </Link>
      </div>
      <div className="flex h-11 shrink-0 items-center gap-1 px-3">
        <ConnectionStatus />
        <span className="flex-1" />
        <FooterLink to="/archive" label="Archived teams" isCurrent={pathname === "/archive"}>
          <Archive className="size-4" />
        </FooterLink>
        <IconButton
          label={isDark ? "Light theme" : "Dark theme"}
          onClick={() => update({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" })}
          data-theme-now={theme}
        >
          {isDark ? <Sun className="size-4" /> : <Moon className="size-4" />}
        </IconButton>
        <FooterLink to="/settings" label="Settings" isCurrent={pathname === "/settings"}>
          <Settings className="size-4" />
        </FooterLink>
      </div>
    </nav>
  );
}

function FooterLink({ to, label, isCurrent, children }: { to: "/archive" | "/settings"; label: string; isCurrent: boolean; children: React.ReactNode }) {
  return (
    <Link to={to} aria-label={label} title={label} aria-current={isCurrent ? "page" : undefined} className={cx("flex size-8 items-center justify-center rounded-sm base:text-ink-2 hover:base:bg-hover pointer-coarse:size-11", isCurrent && "bg-press text-ink")}>
      {children}
    </Link>
  );
}

/** Grey bars in place of the teams: the list is not empty, it is not there yet. */
function LoadingRows({ isBroken }: { isBroken: boolean }) {
  return (
    <div className="min-h-0 flex-1 px-4 pt-2" aria-busy={!isBroken}>
      <span role="status" className="sr-only">
        {isBroken ? "" : "Loading your teams"}
      </span>
      {!isBroken && ["w-3/4", "w-1/2", "w-2/3", "w-2/5", "w-3/5"].map((width) => <div key={width} className={cx("my-3 h-3 rounded-xs bg-hover", width)} />)}
    </div>
  );
}

/** Filters the list by the names of teams and members. Arrow down goes to the list, Escape clears the filter. */
function TeamFilter({ onLeave }: { onLeave: () => void }) {
  const { teamFilter, update } = useShell();
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") update({ teamFilter: "" });
    else if (event.key === "ArrowDown" || event.key === "Enter") onLeave();
    else return;
    event.preventDefault();
  };
  return (
    <div className="relative mt-2">
      <input
        type="text"
        dir="auto"
        value={teamFilter}
        aria-label="Filter teams and members"
        placeholder="Filter teams…"
        onChange={(event) => update({ teamFilter: event.target.value })}
        onKeyDown={onKeyDown}
        className="h-8 w-full rounded-sm border border-control bg-surface px-2.5 pr-9 text-sm pointer-coarse:h-11"
      />
      {teamFilter && (
        <button type="button" aria-label="Clear the filter" onClick={() => update({ teamFilter: "" })} className="absolute inset-y-0 right-0 flex w-9 items-center justify-center text-ink-3 hover:text-ink">
          <X className="size-4" aria-hidden />
        </button>
      )}
    </div>
  );
}

function InboxLink({ pathname, unanswered, unread }: { pathname: string; unanswered: number; unread: number }) {
  return (
    <Link to="/inbox" aria-current={pathname.startsWith("/inbox") ? "page" : undefined} className={cx(rowStyle, pathname.startsWith("/inbox") && currentStyle)}>
      <Inbox className="size-4 text-ink-2" aria-hidden />
      <span className="flex-1 font-medium">Inbox</span>
      <WaitingBadge questions={unanswered} unread={unread} />
    </Link>
  );
}
