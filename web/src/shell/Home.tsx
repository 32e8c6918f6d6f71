/** Home: redirect to the page that was open last, or the welcome page if there is no team. */
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { errorMessage } from "@/api/client";
import { teamsQuery } from "@/api/queries";
import { readStored } from "@/lib/storage";
import { Button, EmptyState, Header, Loading, Logo, ErrorPanel } from "@/ui";
import { NotFound } from "@/shell/statusPages";
import { SidebarButton } from "@/shell/SidebarButton";
import { useShell } from "@/shell/state";

const DefaultModel = lazy(() => import("@/models/DefaultModel"));

export function Home({ team }: { team?: string }) {
  const teams = useQuery(teamsQuery);
  const setOpen = useShell((state) => state.setOpen);
  if (teams.isPending) return <Loading label="Loading your teams" />;
  if (teams.isError) return <ErrorPanel title="Your teams could not be loaded" detail={errorMessage(teams.error)} onRetry={() => void teams.refetch()} />;
  const activeTeams = teams.data.filter((one) => one.status !== "archived");
  if (team !== undefined) {
    const found = teams.data.find((one) => one.id === team || one.name === team);
    if (!found?.coordinator_id) return <NotFound />;
    return <Navigate to="/t/$team/a/$agent" params={{ team: found.id, agent: found.coordinator_id }} replace />;
  }
  if (activeTeams.length > 0) {
    const lastVisited = readStored("last-place");
    if (lastVisited?.startsWith("/inbox") || activeTeams.some((one) => lastVisited?.startsWith(`/t/${one.id}/`))) return <Navigate to={lastVisited as "/"} replace />;
    const newest = activeTeams.at(-1)!;
    if (newest.coordinator_id) return <Navigate to="/t/$team/a/$agent" params={{ team: newest.id, agent: newest.coordinator_id }} replace />;
  }
  return (
    <>
      <Header lead={<SidebarButton />} title="Welcome" />
      <EmptyState
        icon={<Logo className="size-8" />}
        title="Give a team something to do"
        action={
          <Button variant="primary" size="lg" onClick={() => setOpen("newTeam", true)}>
            New team
          </Button>
        }
      >
        You say what you want. A coordinator plans it, hires the teammates it needs, and tells you when something needs you. You can watch every agent and
        talk to it while it works.
        <Suspense>
          <DefaultModel />
        </Suspense>
      </EmptyState>
    </>
  );
}
