/** Sidebar: the inbox, then every team with its members and screens. */
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { ChevronRight, Inbox, Moon, Plus, Search, Settings, Sun } from "lucide-react";
import { type Agent, errorMessage, type Team } from "@/api/client";
import { agentsQuery, inboxQuery, teamsQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { Badge, Button, StatusDot, IconButton, Kbd, Logo, type AgentStatus } from "@/ui";
import { ConnectionStatus } from "@/shell/Connection";
import { unansweredItems } from "@/shell/unanswered";
import { useShell } from "@/shell/state";
import { SCREENS } from "@/views";

const MODIFIER_KEY = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl ";

export function Sidebar() {
  const { setOpen, theme, update } = useShell();
  const teams = useQuery(teamsQuery);
  const shown = (teams.data ?? []).filter((team) => team.status !== "archived");
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
        <IconButton label="New team" keys="c" onClick={() => setOpen("newTeam", true)}>
          <Plus className="size-[18px]" />
        </IconButton>
      </div>
      <div className="px-2">
        <button
          type="button"
          onClick={() => setOpen("palette", true)}
          className="flex h-8 w-full items-center gap-2 rounded-sm border border-line-2 bg-surface px-2.5 text-sm text-ink-3 hover:bg-hover pointer-coarse:h-11"
        >
          <Search className="size-4" aria-hidden />
          <span className="flex-1 text-left">Jump to…</span>
          <Kbd>{MODIFIER_KEY}K</Kbd>
        </button>
        <InboxLink />
      </div>
      <div className="scroll min-h-0 flex-1 px-2 pb-4">
        {teams.isError && (
          <p role="alert" className="m-2 text-xs text-fail">
            {errorMessage(teams.error)}
          </p>
        )}
        {shown.map((team) => (
          <TeamGroup key={team.id} team={team} />
        ))}
        {teams.isSuccess && shown.length === 0 && (
          <div className="mt-4 px-2 text-sm text-ink-2">
            <p>No teams yet. A team works towards one goal, and you can talk to anyone in it.</p>
            <Button className="mt-3 w-full" onClick={() => setOpen("newTeam", true)}>
              <Plus className="size-4" /> New team
            </Button>
          </div>
        )}
      </div>
      <div className="flex h-11 shrink-0 items-center gap-1 border-t border-line px-3">
        <ConnectionStatus />
        <span className="flex-1" />
        <IconButton
          label={isDark ? "Light theme" : "Dark theme"}
          onClick={() => update({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" })}
          data-theme-now={theme}
        >
          {isDark ? <Sun className="size-4" /> : <Moon className="size-4" />}
        </IconButton>
        <Link to="/settings" aria-label="Settings" className="flex size-8 items-center justify-center rounded-sm text-ink-2 hover:bg-hover pointer-coarse:size-10">
          <Settings className="size-4" />
        </Link>
      </div>
    </nav>
  );
}

const rowStyle = "flex h-8 w-full items-center gap-2.5 rounded-sm px-2.5 text-sm hover:bg-hover pointer-coarse:h-11";
const currentStyle = "bg-press font-medium hover:bg-press";

function InboxLink() {
  const inbox = useQuery(inboxQuery);
  const { pathname } = useLocation();
  const unanswered = unansweredItems(inbox.data?.items).length;
  const unread = inbox.data?.unread ?? 0;
  return (
    <Link to="/inbox" className={cx(rowStyle, "mt-2", pathname.startsWith("/inbox") && currentStyle)}>
      <Inbox className="size-4 text-ink-2" aria-hidden />
      <span className="flex-1 font-medium">Inbox</span>
      <Badge n={unanswered || unread} isUrgent={unanswered > 0} label={unanswered ? `${unanswered} waiting for your answer` : `${unread} unread`} />
    </Link>
  );
}

function TeamGroup({ team }: { team: Team }) {
  const isCollapsed = useShell((state) => state.collapsed[team.id] ?? false);
  const collapse = useShell((state) => state.collapse);
  const { pathname } = useLocation();
  const here = `/t/${team.id}`;
  return (
    <section aria-label={team.name} className="mt-3">
      <div className="flex h-8 items-center gap-1 rounded-sm pr-2.5 hover:bg-hover pointer-coarse:h-11">
        <button
          type="button"
          aria-expanded={!isCollapsed}
          onClick={() => collapse(team.id, !isCollapsed)}
          className="flex min-w-0 flex-1 items-center gap-1.5 self-stretch pl-1.5 text-left text-sm font-semibold"
        >
          <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3 transition-transform", !isCollapsed && "rotate-90")} aria-hidden />
          <span dir="auto" className="truncate">{team.name}</span>
          {team.trust !== "standard" && (
            <span className={cx("text-xs font-normal", team.trust === "open" ? "text-fail" : "text-ink-3")} title="Trust">
              {team.trust}
            </span>
          )}
          {team.status === "paused" && <span className="text-xs font-normal text-ink-3">paused</span>}
        </button>
        {isCollapsed && <Badge n={team.open_questions || team.unread} isUrgent={team.open_questions > 0} label={`${team.open_questions || team.unread} for you`} />}
        {team.usd > 0 && <span className="tabular text-xs text-ink-3">{money(team.usd)}</span>}
      </div>
      {!isCollapsed && <Members team={team} />}
      {!isCollapsed && SCREENS.some((screen) => screen.isListed) && (
        <div className="flex flex-wrap items-center pl-[26px]">
          {SCREENS.filter((screen) => screen.isListed).map((screen) => (
            <Link
              key={screen.path}
              to={`${here}/${screen.path}` as "/"}
              className={cx(
                "flex h-7 items-center rounded-sm px-2 text-xs text-ink-2 hover:bg-hover hover:text-ink pointer-coarse:h-10",
                (pathname === `${here}/${screen.path}` || pathname.startsWith(`${here}/${screen.path}/`)) && "bg-press font-medium text-ink hover:bg-press",
              )}
            >
              {screen.label}
            </Link>
          ))}
        </div>
      )}
    </section>
  );
}

function Members({ team }: { team: Team }) {
  const agents = useQuery(agentsQuery(team.id));
  const inbox = useQuery(inboxQuery);
  const askingAgents = new Set(unansweredItems(inbox.data?.items).map((item) => item.message.sender));
  const present = (agents.data ?? []).filter((agent) => agent.retired_at === null);
  const former = (agents.data ?? []).filter((agent) => agent.retired_at !== null);
  if (agents.isPending) return <div className="h-8 px-8 text-xs leading-8 text-ink-3">Loading the members…</div>;
  return (
    <>
      {present.map((agent) => (
        <MemberLink key={agent.id} agent={agent} isAsking={askingAgents.has(agent.id)} />
      ))}
      {former.length > 0 && (
        <details className="group">
          <summary className="flex h-7 list-none items-center gap-2.5 rounded-sm px-2.5 text-xs text-ink-3 hover:bg-hover pointer-coarse:h-10">
            <StatusDot status="left" /> {plural(former.length, "former member")}
          </summary>
          {former.map((agent) => (
            <MemberLink key={agent.id} agent={agent} isAsking={askingAgents.has(agent.id)} />
          ))}
        </details>
      )}
    </>
  );
}

function MemberLink({ agent, isAsking }: { agent: Agent; isAsking: boolean }) {
  const { pathname } = useLocation();
  const isCurrent = pathname === `/t/${agent.team_id}/a/${agent.id}`;
  const isCoordinator = agent.role === "coordinator";
  const unread = isCurrent ? 0 : agent.unread;
  return (
    <Link
      to="/t/$team/a/$agent"
      params={{ team: agent.team_id, agent: agent.id }}
      aria-current={isCurrent ? "page" : undefined}
      className={cx(rowStyle, isCurrent && currentStyle, agent.retired_at !== null && "text-ink-3")}
    >
      <StatusDot status={agent.status as AgentStatus} />
      <span className="min-w-0 flex-1 truncate">
        <span dir="auto" className={cx((isAsking || unread > 0) && "font-semibold")}>{capitalize(agent.name)}</span>
        {!isCoordinator && agent.role && agent.role !== "worker" && agent.role !== agent.name && <span className="ml-2 text-xs font-normal text-ink-3">{agent.role}</span>}
      </span>
      <Badge n={isAsking ? Math.max(1, unread) : unread} isUrgent={isAsking} label={isAsking ? "Waiting for your answer" : `${unread} unread`} />
    </Link>
  );
}
