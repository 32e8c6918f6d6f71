/** SettingsQuery: all settings of a team, and how a change of them is saved. */
import { queryOptions, useMutation } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { showToast } from "@/views/shared/toast";

export type TeamSettings = Schemas["TeamSettingsView"];
export type TeamChanges = Schemas["TeamChanges"];

export const settingsKey = (team: string) => ["team-settings", team] as const;

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

/** Save changes of a team. `said` is what a toast says afterwards. */
export function useSave(team: string, said = "Saved.") {
  return useMutation({
    mutationFn: (body: TeamChanges) => unwrap(api.PATCH("/api/teams/{team}", { params: { path: { team } }, body })),
    onSuccess: async () => {
      await refreshTeam(team);
      showToast(said);
    },
  });
}
