/** Endings: how a task ended, in the words that the inbox, the conversation and the board share. */
import type { components } from "@/api/types";
import { plural } from "@/lib/format";

type Schemas = components["schemas"];
/** A kind of state, which has a colour. */
export type Tone = "plain" | "work" | "done" | "wait" | "fail";
export type NodeStatus = Schemas["NodeStatus"];
export type StopReason = NonNullable<Schemas["NodeView"]["stop_reason"]>;
type MessageKind = Schemas["MessageView"]["kind"];
/** What is known of the task that a message is about. */
export interface Ending {
  status: NodeStatus | null;
  stopReason: StopReason | null;
  hasDoubts: boolean;
}

const FINISHED = new Set<NodeStatus>(["completed", "partial", "failed", "cancelled"]);
export const isFinished = (status: NodeStatus): boolean => FINISHED.has(status);

export const PARTIAL = "Partial result";
export const DONE_WITH_DOUBTS = "Done, with doubts";

/** What each limit is called. */
const LIMITS: Partial<Record<StopReason, string>> = { turns_spent: "turns", tokens_spent: "tokens", money_spent: "money", calls_spent: "model calls", time_spent: "time" };
/** The limit of a budget that each reason for an end names. */
export const ENDED_BY: Partial<Record<StopReason, Limit>> = { turns_spent: "turns", calls_spent: "turns", tokens_spent: "tokens", money_spent: "usd", time_spent: "seconds", looping: "turns" };
export type Limit = "turns" | "tokens" | "usd" | "seconds";
const KINDS: Partial<Record<MessageKind, string>> = { question: "Question", approval: "Approval", briefing: "Briefing", report: "Report", result: "Result", failure: "Failure", suggestion: "Suggestion", nudge: "Nudge", notice: "Notice" };

/** Return why there is only a part of the result. */
export function stoppedText(reason: StopReason | null): string {
  if (reason === "partly_reached") return "reached only in part";
  if (reason === "looping") return "stopped in a loop";
  const limit = reason ? LIMITS[reason] : undefined;
  return `stopped at a limit${limit ? ` (${limit})` : ""}`;
}
export const partialText = (reason: StopReason | null): string => `${PARTIAL}: ${stoppedText(reason)}`;

const GOAL_ENDS: Partial<Record<NodeStatus, string>> = { partial: "its goal has a partial result", failed: "its goal failed", cancelled: "its goal was cancelled" };
/** Return why a team stopped: because its goal ended like this, or because a person stopped it. */
export function stoppedTeamText(goal: NodeStatus | null | undefined): string {
  const end = goal ? GOAL_ENDS[goal] : undefined;
  return end ? `The team stopped: ${end}` : "The team was stopped";
}

/** Return how many points of a result are not confirmed. */
export const pointsText = (count: number): string => `${plural(count, "point")} not confirmed`;

/** Return what a message is; an empty text for an ordinary message. A task that ended early may have gone on since. */
export function messageLabel(kind: MessageKind, { status, stopReason, hasDoubts }: Ending): { text: string; tone: Tone } {
  if (kind === "result" && hasDoubts) return { text: DONE_WITH_DOUBTS, tone: "wait" };
  if (kind === "report" && stopReason === "not_reached") return { text: "Nothing found", tone: "wait" };
  if (kind !== "failure") return { text: KINDS[kind] ?? "", tone: "plain" };
  switch (status) {
    case "partial":
      return { text: partialText(stopReason), tone: "wait" };
    case "completed":
      return { text: "Stopped early, done since", tone: "plain" };
    case "failed":
    case "cancelled":
    case null:
      return { text: stopReason === "not_reached" ? "Not reached" : "Failure", tone: "fail" };
    default:
      return { text: "Stopped early, goes on now", tone: "work" };
  }
}
