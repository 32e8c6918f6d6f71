import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { explain } from "@/api/client";
import { teamsQuery } from "@/api/queries";
import { Loading, Trouble } from "@/ui";
import type { Screen } from "@/views";
import { NotHere } from "@/shell/statusPages";

/** A lazy screen of a team, with its team looked up. */
export function ScreenPage({ screen, teamId, rest }: { screen: Screen; teamId: string; rest: string }) {
  const teams = useQuery(teamsQuery);
  const View = useMemo(() => lazy(screen.load), [screen]);
  if (teams.isPending) return <Loading what="Loading the team" />;
  if (!teams.data) return <Trouble title="The teams could not be loaded" detail={explain(teams.error)} onRetry={() => void teams.refetch()} />;
  const team = teams.data.find((one) => one.id === teamId || one.name === teamId);
  if (!team) return <NotHere />;
  return (
    <Suspense fallback={<Loading what={`Opening ${screen.label.toLowerCase()}`} />}>
      <View team={team} rest={rest} />
    </Suspense>
  );
}
