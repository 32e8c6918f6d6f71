/** Home: the last place this browser was at, or how to begin. */
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { Menu as MenuIcon } from "lucide-react";
import { explain } from "@/api/client";
import { teamsQuery } from "@/api/queries";
import { recall } from "@/lib/storage";
import { Button, EmptyState, Header, IconButton, Loading, Mark, Trouble } from "@/ui";
import { NotHere } from "@/shell/statusPages";
import { useShell } from "@/shell/state";

/** Opens the sidebar where it is a drawer. */
export function RailButton() {
  const open = useShell((state) => state.open);
  return (
    <IconButton label="Teams" className="md:hidden" onClick={() => open("rail", true)}>
      <MenuIcon className="size-5" />
    </IconButton>
  );
}

export function Home({ team }: { team?: string }) {
  const teams = useQuery(teamsQuery);
  const open = useShell((state) => state.open);
  if (teams.isPending) return <Loading what="Loading your teams" />;
  if (teams.isError) return <Trouble title="Your teams could not be loaded" detail={explain(teams.error)} onRetry={() => void teams.refetch()} />;
  const shown = teams.data.filter((one) => one.status !== "archived");
  if (team !== undefined) {
    const found = teams.data.find((one) => one.id === team || one.name === team);
    if (!found?.coordinator_id) return <NotHere />;
    return <Navigate to="/t/$team/a/$agent" params={{ team: found.id, agent: found.coordinator_id }} replace />;
  }
  if (shown.length > 0) {
    const last = recall("last-place");
    if (last?.startsWith("/inbox") || shown.some((one) => last?.startsWith(`/t/${one.id}/`))) return <Navigate to={last as "/"} replace />;
    const newest = shown.at(-1)!;
    if (newest.coordinator_id) return <Navigate to="/t/$team/a/$agent" params={{ team: newest.id, agent: newest.coordinator_id }} replace />;
  }
  return (
    <>
      <Header lead={<RailButton />} title="Welcome" />
      <EmptyState
        icon={<Mark className="size-8" />}
        title="Give a team something to do"
        action={
          <Button look="ink" size="lg" onClick={() => open("newTeam", true)}>
            New team
          </Button>
        }
      >
        You say what you want. A coordinator plans it, hires the teammates it needs, and tells you when something needs you. You can look over anyone's shoulder
        and talk to them while they work. Without a model key a scripted demo answers, so there is nothing to set up first.
      </EmptyState>
    </>
  );
}
