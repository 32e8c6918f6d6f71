/** Task status: its label, icon and tone, which all lists of tasks share. */
import { Ban, Check, CircleAlert, CircleDashed, CircleDot, CircleSlash2, Hourglass, LoaderCircle, type LucideIcon, MessageCircleQuestion } from "lucide-react";
import type { Schemas, WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { DONE_WITH_DOUBTS, PARTIAL } from "@/lib/endings";
import { capitalize, duration, fullTime } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import { Chip, type Tone } from "@/ui";

export type NodeStatus = Schemas["NodeStatus"];
/** A node's status, with two more values: a waiting node that asked the person something, and a done one whose result is not confirmed. */
export type DisplayStatus = NodeStatus | "asks" | "doubts";

interface StatusStyle {
  label: string;
  tone: Tone;
  icon: LucideIcon;
}
export const STATUS_STYLES: Record<DisplayStatus, StatusStyle> = {
  pending: { label: "Pending", tone: "plain", icon: CircleDashed },
  assigned: { label: "Queued", tone: "plain", icon: CircleDot },
  running: { label: "Running", tone: "work", icon: LoaderCircle },
  waiting: { label: "Waiting", tone: "plain", icon: Hourglass },
  asks: { label: "Waiting for you", tone: "wait", icon: MessageCircleQuestion },
  completed: { label: "Done", tone: "done", icon: Check },
  doubts: { label: DONE_WITH_DOUBTS, tone: "wait", icon: Check },
  partial: { label: PARTIAL, tone: "wait", icon: CircleSlash2 },
  failed: { label: "Failed", tone: "fail", icon: CircleAlert },
  cancelled: { label: "Cancelled", tone: "plain", icon: Ban },
};

/** Labels of an agent's three lanes. */
export const LANE_LABELS: Record<Schemas["ThreadView"]["kind"], string> = { work: "Work", reply: "Reply", reflection: "Reflection" };

export function displayStatusOf(node: Pick<WorkNode, "status" | "doubts">, isAsking: boolean): DisplayStatus {
  if (node.status === "waiting" && isAsking) return "asks";
  return node.status === "completed" && node.doubts.length > 0 ? "doubts" : node.status;
}

/** `isNarrow`: on a phone only its icon is shown. */
export function StatusChip({ status, className, isNarrow = false }: { status: DisplayStatus; className?: string; isNarrow?: boolean }) {
  const { label, tone, icon: Icon } = STATUS_STYLES[status];
  return (
    <Chip tone={tone} className={className}>
      <Icon className={cx("size-3.5", status === "running" && "animate-[spin_2.4s_linear_infinite]")} aria-hidden />
      <span className={cx(isNarrow && "max-md:sr-only")}>{label}</span>
    </Chip>
  );
}

type Times = Pick<WorkNode, "worked_seconds" | "running_since">;

/** Return how long a task was worked on, up to now. Waits and the time without a server do not count. */
export const workedMs = ({ worked_seconds, running_since }: Times, now: number): number => 1000 * worked_seconds + (running_since ? Math.max(0, now - Date.parse(running_since)) : 0);

/** Return how long a task was worked on, in words; empty if it has not started. */
export const elapsed = (node: Times & Pick<WorkNode, "started_at">, now: number): string => (node.started_at ? duration(workedMs(node, now)) : "");

const STOP_REASONS: Partial<Record<NonNullable<WorkNode["stop_reason"]>, string>> = {
  answered: "Answered with text",
  partly_reached: "Reached only in part",
  not_reached: "Not reached",
  nothing_to_do: "Found nothing to do",
  turns_spent: "Used up its turns",
  tokens_spent: "Used up its tokens",
  money_spent: "Used up its budget",
  calls_spent: "Used up its model calls",
  time_spent: "Used up its time",
  looping: "Repeated itself without progress",
  silent: "Stopped answering",
  unmet: "A task it depends on did not succeed",
  skipped: "Skipped: a task it depends on did not succeed",
  no_result: "Ended without a result",
  model_refused: "Its model could not be used",
  broken: "Stopped by an error in agiraph itself",
};
export const stopReasonText = (reason: WorkNode["stop_reason"]): string => (reason ? (STOP_REASONS[reason] ?? "") : "");

/** Return who cancelled a task and when, or why it was. */
export function cancelledText({ canceller, canceller_id, stop_reason, ended_at }: Pick<WorkNode, "canceller" | "canceller_id" | "stop_reason" | "ended_at">): string {
  const who = canceller_id === HUMAN ? "you" : capitalize(canceller ?? "a teammate");
  const how = canceller_id ? `Stopped by ${who}` : stop_reason === "skipped" ? stopReasonText(stop_reason) : "Stopped: what needed it has ended";
  return ended_at ? `${how}, ${fullTime(ended_at)}` : how;
}
