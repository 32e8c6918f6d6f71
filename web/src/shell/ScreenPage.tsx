/** ScreenPage: the pages of a team: what is the same on all of them, its tabs and the bars that say that it waits, and the screen that is open. */
import { useQuery } from "@tanstack/react-query";
import { Outlet, useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { ApiError, errorMessage } from "@/api/client";
import { teamQuery } from "@/api/queries";
import { type ChunkComponent, lazyChunk } from "@/live/chunks";
import { ErrorPanel, Loading } from "@/ui";
import type { Screen } from "@/views";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { NotFound } from "@/parts/statusPages";
import { PHONE_PX, useNarrow } from "@/parts/useNarrow";

const TeamHeader = lazyChunk(() => import("@/shell/TeamTabs").then((loaded) => ({ default: loaded.TeamHeader })));
const TeamBar = lazyChunk(() => import("@/parts/TeamBar"));
const WaitingBar = lazyChunk(() => import("@/parts/WaitingBar"));

export function TeamPage() {
  const { team: id = "" } = useParams({ strict: false });
  const team = useQuery(teamQuery(id)).data;
  const isPhone = useNarrow(PHONE_PX);
  return (
    <>
      {team && (
        <>
          {!isPhone && (
            <Suspense fallback={<div className="h-11 shrink-0 border-b border-line" />}>
              <TeamHeader team={team} />
            </Suspense>
          )}
          <Suspense>
            <TeamBar team={team} />
            <WaitingBar team={team.id} />
          </Suspense>
        </>
      )}
      <Outlet />
    </>
  );
}

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
    <Suspense
      fallback={
        <>
          <ScreenHeader team={team.data} title={screen.label} />
          <Loading label={`Opening ${screen.label.toLowerCase()}`} />
        </>
      }
    >
      <View team={team.data} rest={rest} />
    </Suspense>
  );
}
