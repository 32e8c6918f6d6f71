/** Sidebar rows: the list of teams as rows: which teams are shown, and in which order. */
import type { TeamOverview } from "@/api/client";

export type SidebarRow =
  | { kind: "team"; key: string; team: TeamOverview; isPinned: boolean }
  | { kind: "finished"; key: string; count: number; isOpen: boolean };

export interface SidebarView {
  /** The id of the team whose page is open. */
  current: string | undefined;
  pinned: string[];
  filter: string;
  showsFinished: boolean;
}

/** Up to this many teams, finished ones are listed among the others: everything fits. */
const FEW_TEAMS = 6;
/** Two teams that were active within the same minute keep their order: the list must not jump with every step of their work. */
const ORDER_STEP_MS = 60_000;

const minute = (team: TeamOverview): number => Math.floor(Date.parse(team.active_at) / ORDER_STEP_MS);

/** Return the teams with the newest activity first; pinned ones come before all others. */
export function sortTeams(teams: TeamOverview[], pinned: string[]): TeamOverview[] {
  const rank = new Map(pinned.map((id, index) => [id, index]));
  const rankOf = (team: TeamOverview) => rank.get(team.id) ?? pinned.length;
  return [...teams].sort((one, other) => rankOf(one) - rankOf(other) || minute(other) - minute(one) || other.created_at.localeCompare(one.created_at));
}

/** Return the teams in their old order, with new ones first: nothing moves under the person's pointer. */
export function keepOrder(teams: TeamOverview[], order: string[]): TeamOverview[] {
  const place = new Map(order.map((id, index) => [id, index]));
  return [...teams].sort((one, other) => (place.get(one.id) ?? -1) - (place.get(other.id) ?? -1));
}

const isFinished = (team: TeamOverview): boolean => team.state === "done" || team.state === "stopped" || team.state === "failed";

/** Return the rows of the list, from teams in the order in which they are shown. */
export function sidebarRows(teams: TeamOverview[], view: SidebarView): SidebarRow[] {
  const rowOf = (team: TeamOverview): SidebarRow => ({ kind: "team", key: team.id, team, isPinned: view.pinned.includes(team.id) });
  const words = view.filter.toLowerCase().trim();
  const matches = (team: TeamOverview) => [team.name, ...team.members.map((member) => `${member.name} ${member.role}`)].some((name) => name.toLowerCase().includes(words));
  if (words) return teams.filter(matches).map(rowOf);
  const areFew = teams.length <= FEW_TEAMS;
  // A finished team that is open, pinned or has something to say stays where it is.
  const isAway = (team: TeamOverview) => !areFew && isFinished(team) && team.id !== view.current && !view.pinned.includes(team.id) && team.open_questions === 0 && team.unread === 0;
  const away = teams.filter(isAway);
  const rows = teams.filter((team) => !isAway(team)).map(rowOf);
  if (away.length === 0) return rows;
  return [...rows, { kind: "finished", key: "finished", count: away.length, isOpen: view.showsFinished }, ...(view.showsFinished ? away.map(rowOf) : [])];
}
