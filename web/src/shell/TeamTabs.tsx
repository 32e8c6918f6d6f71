/** TeamTabs: the screens of a team as tabs: in the header of its pages, and on a phone at the lower edge, where other pages have Start, Inbox and Teams. */
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate } from "@tanstack/react-router";
import { ChevronDown, Columns2, Ellipsis, House, Inbox, type LucideIcon, MoreVertical, PanelsTopLeft } from "lucide-react";
import type { Team } from "@/api/client";
import { openQuery, teamQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { useShell } from "@/parts/shellState";
import { StateIcon } from "@/parts/StateIcon";
import { TEAM_STATES } from "@/parts/teamState";
import { WaitingBadge } from "@/parts/WaitingBadge";
import { useTeamCommands } from "@/shell/teamCommands";
import { Button, Menu, MenuItem, MenuSeparator } from "@/ui";
import { Overflow } from "@/ui/Overflow";
import { type TeamTab, teamTabs } from "@/views";

/** Return a function that opens a page. */
function useGo(): (to: string) => void {
  const navigate = useNavigate();
  return (to) => void navigate({ to: to as "/" });
}

const TAB = "flex h-full items-center border-b-2 px-2.5 text-sm font-medium whitespace-nowrap outline-offset-[-4px]";
const tabStyle = (isCurrent: boolean) => cx(TAB, isCurrent ? "border-ink text-ink" : "border-transparent text-ink-2 hover:text-ink");

export function TeamHeader({ team }: { team: Team }) {
  const { pathname } = useLocation();
  const tabs = teamTabs(team);
  return (
    <div data-team-header className="flex h-11 shrink-0 items-center gap-4 border-b border-line px-4">
      <div className="flex max-w-60 min-w-0 shrink-0 items-center gap-2 max-lg:max-w-44">
        <StateIcon state={team.state} />
        <span dir="auto" title={team.name} className="truncate text-base font-semibold">{team.name}</span>
        <span aria-hidden className="shrink-0 text-xs text-ink-3 max-xl:hidden">{TEAM_STATES[team.state].label}</span>
      </div>
      <nav aria-label="Screens of the team" className="flex min-w-0 flex-1 self-stretch">
        <Overflow
          className="h-11"
          items={tabs.map((tab) => ({
            key: tab.label,
            link: (
              <Link to={tab.href as "/"} aria-current={tab.isAt(pathname) ? "page" : undefined} className={tabStyle(tab.isAt(pathname))}>
                {tab.label}
              </Link>
            ),
          }))}
          menu={(hidden) => <MoreTabs tabs={tabs.filter((tab) => hidden.includes(tab.label))} pathname={pathname} />}
        />
      </nav>
      <TeamMenu team={team} />
    </div>
  );
}

/** The tabs that do not fit. Its button has the name of the one that is open. */
function MoreTabs({ tabs, pathname }: { tabs: TeamTab[]; pathname: string }) {
  if (tabs.length === 0) return null;
  const current = tabs.find((tab) => tab.isAt(pathname));
  return (
    <Menu
      trigger={
        <button type="button" aria-label={current ? `More screens; ${current.label} is open` : "More screens"} className={cx(tabStyle(current !== undefined), "shrink-0 gap-1")}>
          {current?.label ?? "More"} <ChevronDown className="size-3.5" aria-hidden />
        </button>
      }
    >
      <TabItems tabs={tabs} pathname={pathname} />
    </Menu>
  );
}

function TabItems({ tabs, pathname }: { tabs: TeamTab[]; pathname: string }) {
  const go = useGo();
  return tabs.map(({ label, icon: Icon, href, isAt }) => (
    <MenuItem key={label} aria-current={isAt(pathname) ? "page" : undefined} className={cx(isAt(pathname) && "font-medium")} onSelect={() => go(href)}>
      <Icon /> {label}
    </MenuItem>
  ));
}

function TeamMenu({ team }: { team: Team }) {
  return (
    <Menu
      trigger={
        <Button variant="ghost" size="icon" aria-label="Team actions">
          <MoreVertical className="size-4" />
        </Button>
      }
    >
      <CommandItems team={team} />
    </Menu>
  );
}

function CommandItems({ team }: { team: Team }) {
  const commands = useTeamCommands(useGo())(team);
  return commands.map(({ label, icon: Icon, isDisabled, run }) => (
    <MenuItem key={label} disabled={isDisabled} onSelect={run}>
      <Icon /> {label}
    </MenuItem>
  ));
}

/** So many screens of a team are tabs of their own on a phone. */
const PHONE_TABS = ["Conversation", "Board", "Files"];

export function BottomTabs() {
  const { pathname } = useLocation();
  const id = /^\/t\/([^/]+)/.exec(pathname)?.[1];
  const team = useQuery({ ...teamQuery(id ?? ""), enabled: id !== undefined }).data;
  return (
    <nav aria-label={team ? "Screens of the team" : "Pages"} className="flex min-h-14 shrink-0 border-t border-line bg-rail pb-[env(safe-area-inset-bottom)]">
      {team ? <TeamBottom team={team} pathname={pathname} /> : <TopBottom pathname={pathname} />}
    </nav>
  );
}

const bottomStyle = (isCurrent: boolean) => cx("relative flex h-14 flex-1 flex-col items-center justify-center gap-0.5 text-2xs outline-offset-[-3px]", isCurrent ? "font-semibold text-ink" : "text-ink-2");

function BottomLink({ to, label, icon: Icon, isCurrent, children }: { to: string; label: string; icon: LucideIcon; isCurrent: boolean; children?: React.ReactNode }) {
  return (
    <Link to={to as "/"} aria-current={isCurrent ? "page" : undefined} className={bottomStyle(isCurrent)}>
      <Icon className="size-5" aria-hidden />
      {label}
      {children}
    </Link>
  );
}

function TeamBottom({ team, pathname }: { team: Team; pathname: string }) {
  const setOpen = useShell((state) => state.setOpen);
  const tabs = teamTabs(team);
  const isOwn = ({ label }: TeamTab) => PHONE_TABS.includes(label);
  const more = tabs.filter((tab) => !isOwn(tab));
  const current = more.find((tab) => tab.isAt(pathname));
  return (
    <>
      {tabs.filter(isOwn).map((tab) => (
        <BottomLink key={tab.label} to={tab.href} label={tab.label} icon={tab.icon} isCurrent={tab.isAt(pathname)} />
      ))}
      <Menu
        trigger={
          <button type="button" aria-label={current ? `More; ${current.label} is open` : "More"} className={bottomStyle(current !== undefined)}>
            <Ellipsis className="size-5" aria-hidden />
            {current?.label ?? "More"}
          </button>
        }
      >
        <TabItems tabs={more} pathname={pathname} />
        <MenuSeparator />
        {pathname.startsWith(`/t/${team.id}/a/`) && (
          <MenuItem onSelect={() => setOpen("detailsSheet", true)}>
            <Columns2 /> Details
          </MenuItem>
        )}
        <CommandItems team={team} />
      </Menu>
    </>
  );
}

function TopBottom({ pathname }: { pathname: string }) {
  const { setOpen, sidebarDrawer } = useShell();
  const inbox = useQuery(openQuery()).data;
  return (
    <>
      <BottomLink to="/" label="Start" icon={House} isCurrent={pathname === "/"} />
      <BottomLink to="/inbox" label="Inbox" icon={Inbox} isCurrent={pathname.startsWith("/inbox")}>
        <span className="absolute top-1 left-1/2 ml-2">
          <WaitingBadge questions={inbox?.open ?? 0} unread={inbox?.unread ?? 0} />
        </span>
      </BottomLink>
      <button type="button" aria-haspopup="dialog" aria-expanded={sidebarDrawer} onClick={() => setOpen("sidebarDrawer", true)} className={bottomStyle(false)}>
        <PanelsTopLeft className="size-5" aria-hidden />
        Teams
      </button>
    </>
  );
}
