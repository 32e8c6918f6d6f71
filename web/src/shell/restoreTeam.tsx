/** Restore a team from the archive, and say so. */
import { api, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { showError, showToast } from "@/views/shared/toast";

export async function restoreTeam(team: { id: string; name: string }): Promise<void> {
  try {
    await unwrap(api.POST("/api/teams/{team}/restore", { params: { path: { team: team.id } } }));
    showToast(`${team.name} is back in the list. Write to it or give it a goal, and it works again.`);
  } catch (error) {
    showError(`${team.name} could not be restored`, error);
  }
  await Promise.all([queryClient.invalidateQueries({ queryKey: queryKeys.overview }), queryClient.invalidateQueries({ queryKey: queryKeys.team(team.id) })]);
}
