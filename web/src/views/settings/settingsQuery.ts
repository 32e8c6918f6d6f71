/** SettingsQuery: all settings of a team, and how a change of them is saved. */
import { queryOptions, useMutation } from "@tanstack/react-query";
import { api, type Schemas, type Team, unwrap } from "@/api/client";
import { overviewQuery, queryClient, queryKeys } from "@/api/queries";
import { showToast } from "@/parts/toast";

export type TeamSettings = Schemas["TeamSettingsView"];
type TeamChanges = Schemas["TeamChanges"];

const settingsKey = (team: string) => ["team-settings", team] as const;

export const settingsQuery = (team: string) =>
  queryOptions({
    queryKey: settingsKey(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}/settings", { params: { path: { team } } })),
    // Spending goes on while the page is open, and a turn's event does not name the settings.
    refetchInterval: 15_000,
  });

/** Fetch again what a changed setting may have changed. */
export const refreshTeam = (team: string): Promise<unknown> =>
  Promise.all([settingsKey(team), queryKeys.overview, queryKeys.archived, queryKeys.team(team), queryKeys.agents(team), queryKeys.cost(team)].map((queryKey) => queryClient.invalidateQueries({ queryKey })));

/** Show what was saved in the list of teams at once. Until the list is fetched again, a team that was just muted would show toasts. */
const showInOverview = ({ id, name, status, trust, quiet_hours, quiet_zone, muted_until }: Team): void =>
  void queryClient.setQueryData(overviewQuery.queryKey, (teams) => teams?.map((one) => (one.id === id ? { ...one, name, status, trust, quiet_hours, quiet_zone, muted_until } : one)));

/** Save changes of a team. `said` is what a toast says afterwards. */
export function useSave(team: string, said = "Saved.") {
  return useMutation({
    mutationFn: (body: TeamChanges) => unwrap(api.PATCH("/api/teams/{team}", { params: { path: { team } }, body })),
    onSuccess: async (saved) => {
      showInOverview(saved);
      await refreshTeam(team);
      showToast(said);
    },
  });
}
