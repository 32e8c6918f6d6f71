/** Work stop: stop all work of all teams, resume it, and say who stopped it. */
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { statusQuery } from "@/parts/serverQueries";
import { showError, showToast } from "@/parts/toast";

type WorkStop = Pick<Schemas["WorkStopView"], "by" | "by_kind">;

/** Return who stopped the work, in words. */
export function stoppedBy({ by, by_kind }: WorkStop): string {
  if (by_kind === "session") return "by you in the browser";
  return by_kind === "owner" ? "with the owner's token" : `with the token “${by}”`;
}

const refresh = () => Promise.all([queryClient.invalidateQueries({ queryKey: ["operations"] }), queryClient.invalidateQueries({ queryKey: statusQuery.queryKey })]);

export async function stopAllWork(): Promise<void> {
  await unwrap(api.POST("/api/operations/stop"));
  await refresh();
}

/** Resume all work, and say that it was resumed or why it was not. */
export async function resumeAllWork(): Promise<void> {
  try {
    await unwrap(api.POST("/api/operations/resume"));
    showToast("All work is resumed. Tasks continue where they stopped.");
  } catch (error) {
    showError("The work could not be resumed", error);
  }
  await refresh();
}
