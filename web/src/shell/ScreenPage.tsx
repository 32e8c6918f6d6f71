import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { errorMessage } from "@/api/client";
import { teamsQuery } from "@/api/queries";
import { Loading, ErrorPanel } from "@/ui";
import type { Screen } from "@/views";
import { NotFound } from "@/shell/statusPages";

/** Looks up the team of a screen and loads the screen's chunk. */
export function ScreenPage({ screen, teamId, rest }: { screen: Screen; teamId: string; rest: string }) {
  const teams = useQuery(teamsQuery);
  const View = useMemo(() => lazy(screen.load), [screen]);
  if (teams.isPending) return <Loading label="Loading the team" />;
  if (!teams.data) return <ErrorPanel title="The teams could not be loaded" detail={errorMessage(teams.error)} onRetry={() => void teams.refetch()} />;
  const team = teams.data.find((one) => one.id === teamId || one.name === teamId);
  if (!team) return <NotFound />;
  return (
    <Suspense fallback={<Loading label={`Opening ${screen.label.toLowerCase()}`} />}>
      <View team={team} rest={rest} />
    </Suspense>
  );
}
