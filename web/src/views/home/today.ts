/** Today: which teams run now, and which have ended since midnight, of all teams of the overview. */
import type { TeamOverview } from "@/api/client";
import { capitalize, dayKey } from "@/lib/format";
import { isAtWork, type TeamState } from "@/parts/teamState";

const ORDER: readonly TeamState[] = ["running", "needs_you", "paused"];

/** Return the teams with work that goes on: those that run first, then by their activity. */
export const atWork = (teams: readonly TeamOverview[]): TeamOverview[] => teams.filter((team) => isAtWork(team.state)).sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || other.active_at.localeCompare(one.active_at));

/** Return the teams whose goal has ended on this day of the person, the last one first. */
export const endedToday = (teams: readonly TeamOverview[], now: number): TeamOverview[] => {
  const today = dayKey(new Date(now).toISOString());
  return teams.filter((team) => !isAtWork(team.state) && team.ended_at !== null && dayKey(team.ended_at) === today).sort((one, other) => other.ended_at!.localeCompare(one.ended_at!));
};

const MOST_NAMES = 3;

/** Return who of a team works now, in words. */
export function whoWorks({ members, state }: Pick<TeamOverview, "members" | "state">): string {
  const names = members.filter((one) => one.status === "working").map((one) => capitalize(one.name));
  const left = names.length - MOST_NAMES;
  if (left > 0) return `${names.slice(0, MOST_NAMES).join(", ")} and ${left} more work`;
  if (names.length > 1) return `${names.slice(0, -1).join(", ")} and ${names.at(-1)} work`;
  if (names.length === 1) return `${names[0]} works`;
  if (state === "paused") return "Paused: nobody works";
  return members.some((one) => one.status === "queued") ? "Starts soon" : state === "needs_you" ? "Waits for your answer" : "Waits for its next step";
}
