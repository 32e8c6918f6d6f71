/** Stale: which keys an event makes out of date. Told together, a moment later, so that a burst costs one load. */
import type { QueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import type { Event } from "@/live/log";

type Key = readonly string[];

export function staleKeys(event: Event): Key[] {
  const team = event.team_id;
  const data = event.data as Record<string, unknown>;
  const [noun] = event.type.split(".");
  switch (noun) {
    case "team":
      return [keys.teams, keys.agents(team)];
    case "agent":
      return [keys.agents(team), keys.teams];
    case "node":
      return event.type === "node.output"
        ? []
        : [keys.agents(team), keys.board(team), keys.node(String(data.node_id)), keys.teams, ["files", team]];
    case "stage":
      return [keys.stages(team), keys.board(team)];
    case "thread":
      return [["threads"], keys.cost(team)];
    case "turn":
      return [keys.thread(String(data.thread_id)), keys.cost(team), keys.node(String(data.node_id))];
    case "tool":
      return [["thread"], ["files", team], keys.node(String(data.node_id))];
    case "message":
    case "question":
      return [...conversations(data), keys.inbox, keys.agents(team), keys.teams];
    case "briefing":
    case "delivery":
      return [keys.inbox];
    case "trigger":
      return [keys.triggers(team)];
    case "memory":
      return [["memory", team], ["files", team]];
    case "insight":
    case "knowledge":
      return [["insights"], ["memories"], ["changes"], keys.held(team)];
    default:
      return [];
  }
}

function conversations(data: Record<string, unknown>): Key[] {
  const known = [data.sender, data.recipient].filter((who): who is string => typeof who === "string" && who !== "human");
  // Seen and answered name messages, not people.
  return known.length > 0 ? known.map(keys.conversation) : [["conversation"]];
}

const WAIT_MS = 250;

/** Marks keys stale a moment after the events that say so. */
export function staleness(client: QueryClient): (events: Event[]) => void {
  const waiting = new Map<string, Key>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (events) => {
    for (const event of events) {
      for (const key of staleKeys(event)) waiting.set(key.join("\n"), key);
    }
    timer ??= setTimeout(() => {
      timer = undefined;
      const due = [...waiting.values()];
      waiting.clear();
      for (const key of due) void client.invalidateQueries({ queryKey: key });
    }, WAIT_MS);
  };
}
