/** ArchivePage: the archived teams, to look at or to restore. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Archive } from "lucide-react";
import { useState } from "react";
import { errorMessage, type TeamOverview } from "@/api/client";
import { archivedQuery } from "@/api/queries";
import { money, plural, shortTime } from "@/lib/format";
import { Button, EmptyState, ErrorPanel, Header, Loading } from "@/ui";
import { restoreTeam } from "@/parts/archiving";
import { TEAM_STATES } from "@/parts/teamState";
import { SidebarButton } from "@/parts/SidebarButton";

export default function ArchivePage() {
  const archived = useQuery({ ...archivedQuery, staleTime: 0 });
  return (
    <>
      <Header lead={<SidebarButton />} title="Archived teams" subtitle="They do no work. Everything they made is kept." />
      {archived.isPending && <Loading label="Loading the archived teams" />}
      {archived.isError && !archived.data && <ErrorPanel title="The archived teams could not be loaded" detail={errorMessage(archived.error)} onRetry={() => void archived.refetch()} />}
      {archived.data?.length === 0 && (
        <EmptyState icon={<Archive />} title="No archived teams">
          A team that you archive leaves the list and appears here. You can restore it at any time.
        </EmptyState>
      )}
      {archived.data !== undefined && archived.data.length > 0 && (
        <div className="scroll min-h-0 flex-1 px-6 max-md:px-4">
          <ul className="mx-auto max-w-[760px] py-3">
            {archived.data.map((team) => (
              <ArchivedTeam key={team.id} team={team} />
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

function ArchivedTeam({ team }: { team: TeamOverview }) {
  const [isRestoring, setIsRestoring] = useState(false);
  const restore = async () => {
    setIsRestoring(true);
    await restoreTeam(team);
    setIsRestoring(false);
  };
  const facts = [TEAM_STATES[team.state].label, `archived ${shortTime(team.active_at)}`, plural(team.members.length + team.former_members, "member"), ...(team.usd > 0 ? [money(team.usd)] : [])];
  return (
    <li className="flex items-center gap-3 border-b border-line py-3">
      <div className="min-w-0 flex-1">
        <Link to="/t/$team" params={{ team: team.id }} dir="auto" className="block truncate text-sm font-semibold hover:underline pointer-coarse:py-1">
          {team.name}
        </Link>
        <p className="text-xs text-ink-3">{facts.join(" · ")}</p>
      </div>
      <Button disabled={isRestoring} onClick={() => void restore()} aria-label={`Restore ${team.name}`}>
        {isRestoring ? "Restoring…" : "Restore"}
      </Button>
    </li>
  );
}
