/** Jobs: which open work a conversation shows as cards, and how far each is, in words. */
import type { Agent, Schemas, WorkNode } from "@/api/client";
import { duration, money, plural } from "@/lib/format";
import { SYSTEM } from "@/lib/participants";
import { isFinished } from "@/lib/endings";
import { waitText } from "@/lib/waitingReason";
import { HELD_BY } from "@/parts/teamState";

export type Job = Schemas["JobView"];

/** Return the open work that concerns an agent. The coordinator shows what nobody gave it or a person asked for, and all research; what it gave away is counted in its card. */
export function jobsOf(jobs: readonly Job[], agent: Pick<Agent, "name">, isCoordinator: boolean): Job[] {
  const open = jobs.filter((job) => job.ended_at === null);
  const ids = new Set(open.map((job) => job.node_id));
  const isPartOfOther = (job: Job) => job.parent_id !== null && ids.has(job.parent_id);
  return open.filter((job) => (isCoordinator ? job.is_research || !isPartOfOther(job) : job.worker === agent.name));
}

/** Return who is on it, whether it runs, and how far it is or what it waits for. */
export function jobText({ state, worker, position, held_by, progress }: Job, isStopped = false): string {
  if (state === "waiting") return `${worker} ${waitText(progress)}`;
  const held = isStopped ? "all_stopped" : held_by;
  if (state === "queued" && held) return position === null ? HELD_BY[held] : `${worker}, ${HELD_BY[held].charAt(0).toLowerCase()}${HELD_BY[held].slice(1)}`;
  return `${worker}, ${stateText(state, position)}${progress && `: ${progress}`}`;
}

function stateText(state: Job["state"], position: number | null): string {
  if (state !== "queued") return state === "running" ? "runs" : state;
  return position !== null && position > 1 ? `number ${position} in the queue` : "starts soon";
}

const doneText = (done: number, tasks: number, kind = "task"): string => `${done} of ${plural(tasks, kind)} done`;

/** Say how many of the tasks that the coordinator gave away have ended, counted as the cards of its work do: without the goal itself, reviews, and what others gave away. The list below shows these, too, so the words say what is counted. */
export function planProgress(nodes: readonly WorkNode[]): string | undefined {
  const roots = new Set(nodes.filter((node) => node.parent_id === null).map((node) => node.id));
  const tasks = nodes.filter((node) => node.parent_id !== null && roots.has(node.parent_id) && node.creator_id !== SYSTEM);
  return tasks.length > 0 ? doneText(tasks.filter((node) => isFinished(node.status)).length, tasks.length, "delegated task") : undefined;
}

const TOOLS: Record<string, [string, string]> = { web_search: ["search", "searches"], web_fetch: ["page", "pages"] };

/** Return the facts of a card: how long it was worked on, how far it is and what it has cost. */
export function jobFacts({ started_at, worked_seconds, running_since, used, limits, tasks, tasks_done }: Job, usd: number | null, now: number): string {
  const calls = Object.entries(limits).map(([tool, limit]) => `${used[tool] ?? 0} of ${plural(limit, ...(TOOLS[tool] ?? [`call of ${tool}`, `calls of ${tool}`]))}`);
  return [started_at !== null && duration(1000 * worked_seconds + (running_since ? Math.max(0, now - Date.parse(running_since)) : 0)), tasks > 0 && doneText(tasks_done, tasks), ...calls, usd !== null && usd > 0 && money(usd)].filter(Boolean).join(" · ");
}
