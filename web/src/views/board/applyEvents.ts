/** applyEvents: update the cached board from live events, until it is fetched again. */
import type { WorkNode } from "@/api/client";
import type { Event } from "@/live/log";

/** Return the node with the changes that one event carries. */
export function applyEvent(node: WorkNode, event: Event): WorkNode {
  const at = event.at;
  switch (event.type) {
    case "node.assigned":
      return { ...node, status: "assigned", assignee_id: event.data.agent_id, assignee: event.data.agent ?? (node.assignee_id === event.data.agent_id ? node.assignee : null), waiting_reason: null, ...stopRun(node, at) };
    case "node.changed":
      return event.data.changed.status ? { ...node, status: event.data.changed.status as WorkNode["status"] } : node;
    case "node.started":
      return { ...node, status: "running", attempt: event.data.attempt, started_at: node.started_at ?? at, waiting_reason: null, running_since: at };
    case "node.waiting":
      return { ...node, ...stopRun(node, at), status: "waiting", waiting_reason: event.data.reason ?? null };
    case "node.cancelled":
      return { ...node, status: "cancelled", canceller_id: event.data.by ?? null, canceller: null, result: null, doubts: [], stop_reason: event.data.reason ?? null, ended_at: at, waiting_reason: null, ...stopRun(node, at) };
    case "node.completed":
    case "node.partial":
    case "node.failed":
      return { ...node, status: event.type.slice(5) as WorkNode["status"], result: event.data.result ?? null, doubts: event.data.doubts ?? [], stop_reason: event.data.reason ?? null, ended_at: at, waiting_reason: null, ...stopRun(node, at) };
    case "node.checkpoint":
      return { ...node, checkpoint: event.data.summary };
    case "node.stalled":
      return { ...node, stalled_at: at };
    default:
      return node;
  }
}

/** Return the time at work after the present run, if there is one. */
const stopRun = (node: WorkNode, at: string): Pick<WorkNode, "worked_seconds" | "running_since"> => ({
  worked_seconds: node.worked_seconds + (node.running_since ? Math.max(0, Date.parse(at) - Date.parse(node.running_since)) / 1000 : 0),
  running_since: null,
});

export function applyEvents(nodes: WorkNode[], events: readonly Event[]): WorkNode[] {
  const eventsByNode = new Map<string, Event[]>();
  for (const event of events) {
    const id = (event.data as { node_id?: unknown }).node_id;
    if (event.type.startsWith("node.") && typeof id === "string") eventsByNode.set(id, [...(eventsByNode.get(id) ?? []), event]);
  }
  if (eventsByNode.size === 0) return nodes;
  return nodes.map((node) => (eventsByNode.get(node.id) ?? []).reduce(applyEvent, node));
}
