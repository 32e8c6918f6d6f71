/** Members: the other agents of a team, in the header of an agent's page, with what each of them does. A menu has all of them, also former ones. */
import { Link, useNavigate } from "@tanstack/react-router";
import { Users } from "lucide-react";
import type { Agent, Team } from "@/api/client";
import { capitalize, plural } from "@/lib/format";
import { shownStatus, useIsStopped } from "@/parts/serverQueries";
import { useTeamQuestions } from "@/parts/unanswered";
import { PHONE_PX, useNarrow } from "@/parts/useNarrow";
import { WaitingBadge } from "@/parts/WaitingBadge";
import { type AgentStatus, Menu, MenuItem, MenuSeparator, STATUS_LABELS, StatusDot } from "@/ui";
import { Overflow } from "@/ui/Overflow";

export default function Members({ team, agents, current }: { team: Team; agents: Agent[]; current: Agent }) {
  const isStopped = useIsStopped();
  const isPhone = useNarrow(PHONE_PX);
  const questions = useTeamQuestions(team.id);
  const statusOf = (agent: Agent) => shownStatus(agent.status as AgentStatus, isStopped);
  const badge = (agent: Agent) => <WaitingBadge questions={questions.filter((item) => item.message.sender === agent.id).length} unread={agent.id === current.id ? 0 : agent.unread} />;
  const present = agents.filter((agent) => agent.retired_at === null);
  const former = agents.filter((agent) => agent.retired_at !== null);
  const others = present.filter((agent) => agent !== current);
  const menu = (isNeeded: boolean, label: string) =>
    isNeeded && <MemberMenu present={present} former={former} current={current} statusOf={statusOf} badge={badge} label={label} working={present.filter((agent) => statusOf(agent) === "working").length} />;
  if (isPhone) return menu(true, String(present.length));
  return (
    <nav aria-label="Members" className="flex min-w-0 flex-1 items-center gap-1">
      <Overflow
        className="h-8 gap-x-1 pointer-coarse:h-11"
        items={others.map((agent) => ({
          key: agent.id,
          link: (
            <Link to="/t/$team/a/$agent" params={{ team: team.id, agent: agent.id }} title={agent.role} className="flex items-center gap-2 rounded-sm px-2 text-sm text-ink-2 outline-offset-[-2px] hover:bg-hover hover:text-ink">
              <StatusDot status={statusOf(agent)} />
              <span dir="auto" className="max-w-32 truncate">{capitalize(agent.name)}</span>
              {badge(agent)}
            </Link>
          ),
        }))}
        menu={(hidden) => menu(hidden.length > 0 || former.length > 0, hidden.length > 0 ? `+${hidden.length}` : "")}
      />
    </nav>
  );
}

interface MenuProps {
  present: Agent[];
  former: Agent[];
  current: Agent;
  statusOf: (agent: Agent) => AgentStatus;
  badge: (agent: Agent) => React.ReactNode;
  /** What its button shows beside the icon. */
  label: string;
  working: number;
}

function MemberMenu({ present, former, current, statusOf, badge, label, working }: MenuProps) {
  const navigate = useNavigate();
  const item = (agent: Agent) => {
    const status = statusOf(agent);
    return (
      <MenuItem key={agent.id} aria-current={agent === current ? "page" : undefined} onSelect={() => void navigate({ to: "/t/$team/a/$agent", params: { team: agent.team_id, agent: agent.id } })}>
        <StatusDot status={status} />
        <span dir="auto" className="max-w-40 truncate">{capitalize(agent.name)}</span>
        {badge(agent)}
        <span aria-hidden className="ml-auto pl-4 text-xs text-ink-3">{STATUS_LABELS[status]}</span>
      </MenuItem>
    );
  };
  return (
    <Menu
      trigger={
        <button type="button" aria-label={`All members: ${plural(present.length, "member")}, ${working} at work`} className="flex h-8 shrink-0 items-center gap-1.5 rounded-sm px-2 text-xs text-ink-2 hover:bg-hover pointer-coarse:h-11">
          <Users className="size-4" aria-hidden /> {label}
        </button>
      }
    >
      {present.map(item)}
      {former.length > 0 && <MenuSeparator />}
      {former.map(item)}
    </Menu>
  );
}
