/** Invalidation: the query keys whose data an event changed. Keys are collected for a moment, so that a burst of events causes one fetch. */
import type { QueryClient } from "@tanstack/react-query";
import { overviewQuery, queryClient, queryKeys } from "@/api/queries";
import { HUMAN } from "@/lib/participants";
import { refreshChanged, refreshCounts, refreshTeams } from "@/live/deltas";
import type { Event } from "@/live/log";

type Key = readonly string[];

export function keysToInvalidate(event: Event): Key[] {
  const team = event.team_id;
  const data = event.data as Record<string, unknown>;
  const [subject] = event.type.split(".");
  switch (subject) {
    case "team":
      // Nothing of a deleted team can be fetched any more.
      if (event.type === "team.deleted") return [queryKeys.overview, queryKeys.archived, queryKeys.inbox, queryKeys.digest];
      return [queryKeys.overview, queryKeys.archived, queryKeys.team(team), queryKeys.agents(team)];
    case "work":
      // Of all teams.
      return [["status"], ["operations"], [...queryKeys.overview]];
    case "agent":
      return [queryKeys.overview, queryKeys.agents(team), queryKeys.team(team)];
    case "node":
      return event.type === "node.output"
        ? []
        : [queryKeys.agents(team), queryKeys.board(team), queryKeys.jobs(team), queryKeys.node(String(data.node_id)), queryKeys.overview, queryKeys.team(team), queryKeys.cost(team), ["files", team], ["results", team], ["research"]];
    case "report":
      return [["shares", String(data.node_id)]];
    case "folder":
      return [queryKeys.folderChanges(team), ["results", team]];
    case "stage":
      return [queryKeys.stages(team), queryKeys.board(team)];
    case "thread":
      return [["threads"], queryKeys.cost(team)];
    case "turn":
      return [queryKeys.thread(String(data.thread_id)), queryKeys.cost(team), queryKeys.dayCost, queryKeys.jobs(team), queryKeys.node(String(data.node_id))];
    case "tool":
      return [["thread"], ["research"], ["files", team], queryKeys.node(String(data.node_id))];
    case "message":
    case "question":
      // Files lists what came with messages among the uploads.
      return [...conversationKeys(data), queryKeys.digest, queryKeys.agents(team), queryKeys.overview, queryKeys.team(team), queryKeys.files(team), queryKeys.files(team, "user_uploads")];
    case "reply":
      // A question that is open again may stand in any conversation.
      return [["conversation"], queryKeys.digest, queryKeys.agents(team), queryKeys.overview];
    case "trigger":
      return [queryKeys.triggers(team), queryKeys.digest];
    case "memory":
      return [["memory", team], ["files", team]];
    case "insight":
    case "knowledge":
      return [["insights"], ["memories"], ["changes"], queryKeys.unconfirmed(team), queryKeys.digest];
    default:
      return [];
  }
}

function conversationKeys(data: Record<string, unknown>): Key[] {
  const agents = [data.sender, data.recipient].filter((id): id is string => typeof id === "string" && id !== HUMAN);
  // "message.seen" and "question.answered" name a message, not its sender: invalidate all conversations.
  return agents.length > 0 ? agents.map(queryKeys.conversation) : [["conversation"]];
}

const BATCH_MS = 250;
/** Data of all teams, which most events change, is fetched once in this time at most. */
const PAUSE_MS = 1_000;

/** Return a function that invalidates the keys of events, `BATCH_MS` after the first of them. */
function batchedInvalidation(client: QueryClient): (events: Event[]) => void {
  const pending = new Map<string, Key>();
  const teams = new Set<string>();
  const arrived: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const fetchTeams = paused(() => {
    const changed = [...teams];
    teams.clear();
    void refreshTeams(changed);
  }, PAUSE_MS);
  const fetchCounts = paused(() => void refreshCounts(), PAUSE_MS);
  const fetchDayCost = paused(() => void client.invalidateQueries({ queryKey: queryKeys.dayCost }), PAUSE_MS);
  return (events) => {
    arrived.push(...events);
    for (const event of events) {
      for (const key of keysToInvalidate(event)) {
        if (key === queryKeys.overview) teams.add(event.team_id);
        else pending.set(key.join("\n"), key);
      }
      if (event.type === "team.deleted") for (const [name, key] of pending) if (key.includes(event.team_id)) pending.delete(name);
    }
    timer ??= setTimeout(() => {
      timer = undefined;
      const due = [...pending.values()];
      pending.clear();
      for (const queryKey of due) {
        if (queryKey === queryKeys.dayCost) fetchDayCost();
        else void client.invalidateQueries({ queryKey });
      }
      if (teams.size > 0) fetchTeams();
      if (refreshChanged(arrived.splice(0))) fetchCounts();
    }, BATCH_MS);
  };
}

/** Return a function that runs the task at once, and after that once in a pause at most. */
export function paused(task: () => void, pauseMs: number): () => void {
  let isPaused = false;
  let isDue = false;
  const run = () => {
    isPaused = true;
    isDue = false;
    task();
    setTimeout(() => {
      isPaused = false;
      if (isDue) run();
    }, pauseMs);
  };
  return () => {
    if (isPaused) isDue = true;
    else run();
  };
}

/** Fetch again what changed between the first requests of the page and the beginning of its events; `heads` are the newest events at that time. */
export async function catchUp(heads: Readonly<Record<string, number>>): Promise<void> {
  const teams = await queryClient.ensureQueryData(overviewQuery).catch(() => []);
  const behind = new Set(teams.filter((team) => team.head < (heads[team.id] ?? 0)).map((team) => team.id));
  if (behind.size === 0) return;
  void refreshTeams(behind);
  const isOld = (part: unknown) => part === "conversation" || part === queryKeys.inbox[0] || behind.has(part as string);
  void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey.some(isOld) });
}

/** Fetch again what these events have changed. */
export const invalidateFor = batchedInvalidation(queryClient);
