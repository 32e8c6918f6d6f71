/** TeamState: the one word that says how a team stands, and what a person does about it. */
import { api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import type { Tone } from "@/lib/endings";
import { showNote } from "@/parts/toast";

export type TeamState = Schemas["TeamView"]["state"];
type HeldBy = NonNullable<Schemas["NodeView"]["held_by"]>;

/** The words for the states, which every list, header and message uses. */
export const TEAM_STATES: Record<TeamState, { label: string; tone: Tone }> = {
  running: { label: "Running", tone: "work" },
  needs_you: { label: "Needs you", tone: "wait" },
  paused: { label: "Paused", tone: "wait" },
  stopped: { label: "Stopped", tone: "plain" },
  failed: { label: "Failed", tone: "fail" },
  done: { label: "Done", tone: "done" },
};

/** Return what stands under the title of a team's screen. The state comes first: on a phone the rest may be cut off. */
export const teamLine = (team: Pick<Team, "name" | "state">, ...facts: (string | false)[]): string => [TEAM_STATES[team.state].label, team.name, ...facts].filter(Boolean).join(" · ");

/** Whether the team has work that goes on, or would if it were not paused. */
export const isAtWork = (state: TeamState): boolean => state === "running" || state === "needs_you" || state === "paused";

/** Whether its stopped or failed work can be started again. A goal that ended with a partial result is extended instead. */
export const canStartAgain = ({ state, status, goal_status }: Pick<Team, "state" | "status"> & Partial<Pick<Team, "goal_status">>): boolean => (state === "stopped" || state === "failed") && status !== "archived" && goal_status !== "partial";

/** What keeps a task from starting. */
export const HELD_BY: Record<HeldBy, string> = {
  all_stopped: "Waits: all work is stopped",
  team_paused: "Waits: the team is paused",
  team_stopped: "Waits: the team is stopped",
  budget: "Cannot start: the budget is used up",
  dependencies: "Waits for other tasks",
  decision: "Needs a decision: a task it needs did not succeed",
  nobody_free: "Waits: nobody is free for it",
};

const DONE = { pause: "is paused: everyone stops at their next step", resume: "goes on where it was", stop: "was stopped" } as const;
export type TeamAction = keyof typeof DONE;

/** Pause, resume, stop or start a team again, and say so. */
export async function runTeamAction(team: Pick<Team, "id" | "name">, action: TeamAction): Promise<void> {
  const params = { params: { path: { team: team.id } } };
  try {
    if (action === "pause") await unwrap(api.POST("/api/teams/{team}/pause", params));
    else if (action === "resume") await unwrap(api.POST("/api/teams/{team}/resume", params));
    else await unwrap(api.POST("/api/teams/{team}/stop", params));
    showNote(`${team.name} ${DONE[action]}.`);
  } catch (error) {
    showNote(errorMessage(error), true);
  }
  await queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(team.id) || queryKey[0] === "overview" });
}
