/** The board, live: what events tell is shown at once; the whole is read again when that settles. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, unwrap, type WorkNode } from "@/api/client";
import { onNews } from "@/live";
import type { Event } from "@/live/log";

const PAGE = 500;
/** Beyond this a board is no picture any more. */
export const MOST = 3000;
const REST_MS = 700;

async function read(team: string): Promise<WorkNode[]> {
  const found: WorkNode[] = [];
  for (;;) {
    const page: WorkNode[] = await unwrap(
      api.GET("/api/teams/{team}/board", { params: { path: { team }, query: { after: found.at(-1)?.id ?? "", limit: PAGE } } }),
    );
    found.push(...page);
    if (page.length < PAGE || found.length >= MOST) return found;
  }
}

/** What an event alone says about a piece of work. */
export function changed(node: WorkNode, event: Event): WorkNode {
  const at = event.at;
  switch (event.type) {
    case "node.assigned":
      return { ...node, status: "assigned", assignee_id: event.data.agent_id, assignee: event.data.agent ?? (node.assignee_id === event.data.agent_id ? node.assignee : null), waiting_reason: null };
    case "node.started":
      return { ...node, status: "running", attempt: event.data.attempt, started_at: node.started_at ?? at, waiting_reason: null };
    case "node.waiting":
      return { ...node, status: "waiting", waiting_reason: event.data.reason ?? null };
    case "node.completed":
    case "node.failed":
    case "node.cancelled":
      return { ...node, status: event.type.slice(5) as WorkNode["status"], result: event.data.result ?? null, ended_at: at, waiting_reason: null };
    case "node.checkpoint":
      return { ...node, checkpoint: event.data.summary };
    case "node.stalled":
      return { ...node, stalled_at: at };
    default:
      return node;
  }
}

export function patched(nodes: WorkNode[], events: readonly Event[]): WorkNode[] {
  const told = new Map<string, Event[]>();
  for (const event of events) {
    const id = (event.data as { node_id?: unknown }).node_id;
    if (event.type.startsWith("node.") && typeof id === "string") told.set(id, [...(told.get(id) ?? []), event]);
  }
  if (told.size === 0) return nodes;
  return nodes.map((node) => (told.get(node.id) ?? []).reduce(changed, node));
}

const COUNTS = /^(node\.(?!output)|stage\.|turn\.added)/;

export function useBoard(team: string) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: ["whole-board", team], queryFn: () => read(team) });
  const { refetch } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isReading = false;
    let again = false;
    // A reading is never broken off by the next event: a busy team would keep its board waiting for ever.
    const refresh = async () => {
      timer = undefined;
      isReading = true;
      const begun = Date.now();
      await refetch({ cancelRefetch: false });
      isReading = false;
      if (again) timer = setTimeout(() => void refresh(), Math.max(REST_MS, 2 * (Date.now() - begun)));
      again = false;
    };
    const stop = onNews((events) => {
      const mine = events.filter((event) => event.team_id === team && COUNTS.test(event.type));
      if (mine.length === 0) return;
      client.setQueryData<WorkNode[]>(["whole-board", team], (now) => now && patched(now, mine));
      if (isReading) again = true;
      else timer ??= setTimeout(() => void refresh(), REST_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [client, refetch, team]);
  return query;
}
