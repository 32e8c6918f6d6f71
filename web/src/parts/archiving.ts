/** Archiving: put a team into the archive or take it back, and say so. */
import { api, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { showError, showToast } from "@/parts/toast";

interface Named {
  id: string;
  name: string;
}

const refresh = (team: Named) =>
  Promise.all([queryClient.invalidateQueries({ queryKey: queryKeys.overview }), queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(team.id) })]);

/** Archive a team and offer to undo it. Resolves when the list of teams is without it. */
export async function archiveTeam(team: Named): Promise<void> {
  await unwrap(api.DELETE("/api/teams/{team}", { params: { path: { team: team.id } } }));
  await refresh(team);
  showToast(`${team.name} is archived.`, () => void restoreTeam(team));
}

export async function restoreTeam(team: Named): Promise<void> {
  try {
    await unwrap(api.POST("/api/teams/{team}/restore", { params: { path: { team: team.id } } }));
    showToast(`${team.name} is back in the list. Write to it or give it a goal, and it works again.`);
  } catch (error) {
    showError(`${team.name} could not be restored`, error);
  }
  await refresh(team);
}
