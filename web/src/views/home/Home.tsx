/** Home: redirect to the page that was open last, or the welcome page if there is no team. */
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { Suspense } from "react";
import { ApiError, errorMessage } from "@/api/client";
import { overviewQuery, teamQuery } from "@/api/queries";
import { readStored } from "@/lib/storage";
import { lazyChunk } from "@/live/chunks";
import { Button, EmptyState, Header, Loading, Logo, ErrorPanel } from "@/ui";
import { NotFound } from "@/parts/statusPages";
import { SidebarButton } from "@/parts/SidebarButton";
import { useShell } from "@/parts/shellState";

const DefaultModel = lazyChunk(() => import("@/views/models/DefaultModel"));

export function Home() {
  const overview = useQuery(overviewQuery);
  const setOpen = useShell((state) => state.setOpen);
  if (overview.isPending) return <Loading label="Loading your teams" />;
  if (!overview.data) return <ErrorPanel title="Your teams could not be loaded" detail={errorMessage(overview.error)} onRetry={() => void overview.refetch()} />;
  const teams = overview.data;
  if (teams.length > 0) {
    const lastVisited = readStored("last-place");
    if (lastVisited?.startsWith("/inbox") || teams.some((one) => lastVisited?.startsWith(`/t/${one.id}/`))) return <Navigate to={lastVisited as "/"} replace />;
    const newest = teams.find((one) => one.coordinator_id);
    if (newest) return <Navigate to="/t/$team/a/$agent" params={{ team: newest.id, agent: newest.coordinator_id! }} replace />;
  }
  return (
    <>
      <Header lead={<SidebarButton />} title="Welcome" />
      <div className="scroll min-h-0 flex-1">
      <EmptyState
        icon={<Logo className="size-8" />}
        title="Give a team something to do"
        action={
          <>
            <Suspense>
              <DefaultModel />
            </Suspense>
            <Button variant="primary" size="lg" className="mt-4" onClick={() => setOpen("newTeam", true)}>
              New team
            </Button>
          </>
        }
      >
        You say what you want. A coordinator plans it, hires the teammates it needs, and tells you when something needs you. You can watch every agent and
        talk to it while it works.
      </EmptyState>
      </div>
    </>
  );
}

/** The page of a team is the conversation with its coordinator. */
export function TeamHome({ team }: { team: string }) {
  const found = useQuery(teamQuery(team));
  if (found.isPending) return <Loading label="Loading the team" />;
  if (found.error instanceof ApiError && found.error.status === 404) return <NotFound />;
  if (!found.data) return <ErrorPanel title="The team could not be loaded" detail={errorMessage(found.error)} onRetry={() => void found.refetch()} />;
  if (!found.data.coordinator_id) return <NotFound />;
  return <Navigate to="/t/$team/a/$agent" params={{ team: found.data.id, agent: found.data.coordinator_id }} replace />;
}
