/** Sidebar rows: the list of teams as rows: which teams are shown, in which order, and what of each. */
import type { Agent, MemberOverview, TeamOverview } from "@/api/client";

export type SidebarRow =
  | { kind: "team"; key: string; team: TeamOverview; isOpen: boolean; isPinned: boolean }
  | { kind: "member"; key: string; team: TeamOverview; member: MemberOverview; isFormer: boolean }
  | { kind: "former"; key: string; team: TeamOverview; isOpen: boolean }
  | { kind: "screens"; key: string; team: TeamOverview }
  | { kind: "finished"; key: string; count: number; isOpen: boolean };

export interface SidebarView {
  /** The id of the team whose page is open. */
  current: string | undefined;
  pinned: string[];
  collapsed: Record<string, boolean>;
  filter: string;
  showsFinished: boolean;
  /** The former members of the teams whose former members are unfolded. */
  former: Record<string, Agent[]>;
}

/** Up to this many teams are all unfolded, and finished ones are listed among them: everything fits. */
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
  const words = view.filter.toLowerCase().trim();
  if (words) return teams.flatMap((team) => matchingRows(team, words, view));
  const areFew = teams.length <= FEW_TEAMS;
  // A finished team that is open, pinned or has something to say stays where it is.
  const isAway = (team: TeamOverview) => !areFew && isFinished(team) && team.id !== view.current && !view.pinned.includes(team.id) && team.open_questions === 0 && team.unread === 0;
  const rowsOf = (team: TeamOverview) => teamRows(team, view, !(view.collapsed[team.id] ?? !(areFew || team.id === view.current)));
  const away = teams.filter(isAway);
  const rows = teams.filter((team) => !isAway(team)).flatMap(rowsOf);
  if (away.length === 0) return rows;
  return [...rows, { kind: "finished", key: "finished", count: away.length, isOpen: view.showsFinished }, ...(view.showsFinished ? away.flatMap(rowsOf) : [])];
}

/** Return the rows of a team whose name, or a member's name or role, holds the words. */
function matchingRows(team: TeamOverview, words: string, view: SidebarView): SidebarRow[] {
  const isNamed = team.name.toLowerCase().includes(words);
  const members = team.members.filter((member) => `${member.name} ${member.role}`.toLowerCase().includes(words));
  if (!isNamed && members.length === 0) return [];
  if (isNamed) return teamRows(team, view, team.id === view.current);
  return [teamRow(team, view, true), ...members.map((member) => memberRow(team, member))];
}

const teamRow = (team: TeamOverview, view: SidebarView, isOpen: boolean): SidebarRow => ({ kind: "team", key: team.id, team, isOpen, isPinned: view.pinned.includes(team.id) });
const memberRow = (team: TeamOverview, member: MemberOverview, isFormer = false): SidebarRow => ({ kind: "member", key: member.id, team, member, isFormer });

function teamRows(team: TeamOverview, view: SidebarView, isOpen: boolean): SidebarRow[] {
  const head = teamRow(team, view, isOpen);
  if (!isOpen) return [head];
  const rows = [head, ...team.members.map((member) => memberRow(team, member))];
  if (team.former_members > 0) {
    const former = view.former[team.id];
    rows.push({ kind: "former", key: `${team.id} former`, team, isOpen: former !== undefined });
    for (const agent of former ?? []) rows.push(memberRow(team, { id: agent.id, name: agent.name, role: agent.role, status: agent.status, unread: agent.unread, questions: 0 }, true));
  }
  // The links to nine screens under every team would hide the teams: only the team in sight, and one that the person unfolded, show theirs.
  if (team.id === view.current || view.collapsed[team.id] === false) rows.push({ kind: "screens", key: `${team.id} screens`, team });
  return rows;
}
