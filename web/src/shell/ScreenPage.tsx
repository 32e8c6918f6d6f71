import { useQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { ApiError, errorMessage } from "@/api/client";
import { teamQuery } from "@/api/queries";
import { type ChunkComponent, lazyChunk } from "@/live/chunks";
import { ErrorPanel, Header, Loading } from "@/ui";
import type { Screen } from "@/views";
import { teamLine } from "@/parts/teamState";
import { SidebarButton } from "@/parts/SidebarButton";
import { NotFound } from "@/parts/statusPages";

const TeamBar = lazyChunk(() => import("@/parts/TeamBar"));
const WaitingBar = lazyChunk(() => import("@/parts/WaitingBar"));

const loaded = new Map<string, ChunkComponent<Awaited<ReturnType<Screen["load"]>>["default"]>>();

/** Return the component of a screen. It is the same for every visit, so that a loaded screen is not loaded again. */
function screenComponent(screen: Screen) {
  const known = loaded.get(screen.path) ?? lazyChunk(screen.load);
  loaded.set(screen.path, known);
  return known;
}

/** Looks up the team of a screen and loads the screen's chunk. */
export function ScreenPage({ screen, teamId, rest }: { screen: Screen; teamId: string; rest: string }) {
  const team = useQuery(teamQuery(teamId));
  const View = screenComponent(screen);
  if (team.isPending) return <Loading label="Loading the team" />;
  if (!team.data) {
    if (team.error instanceof ApiError && team.error.status === 404) return <NotFound />;
    return <ErrorPanel title="The team could not be loaded" detail={errorMessage(team.error)} onRetry={() => void team.refetch()} />;
  }
  return (
    <>
      <Suspense>
        <TeamBar team={team.data} />
        <WaitingBar team={team.data.id} />
      </Suspense>
      <Suspense
        fallback={
          <>
            <Header lead={<SidebarButton />} title={screen.label} subtitle={teamLine(team.data)} />
            <Loading label={`Opening ${screen.label.toLowerCase()}`} />
          </>
        }
      >
        <View team={team.data} rest={rest} />
      </Suspense>
    </>
  );
}
