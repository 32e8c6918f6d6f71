/** Work: how a task looks in any list: its state in words, shape and tone. */
import { Ban, Check, CircleAlert, CircleDashed, CircleDot, Hourglass, LoaderCircle, type LucideIcon, MessageCircleQuestion } from "lucide-react";
import type { Schemas, WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { duration } from "@/lib/format";
import { Chip, type Tone } from "@/ui";

export type NodeStatus = Schemas["NodeStatus"];
export type Standing = NodeStatus | "asks";

interface Look {
  words: string;
  tone: Tone;
  icon: LucideIcon;
}
export const LOOKS: Record<Standing, Look> = {
  pending: { words: "Pending", tone: "plain", icon: CircleDashed },
  assigned: { words: "Queued", tone: "plain", icon: CircleDot },
  running: { words: "Running", tone: "work", icon: LoaderCircle },
  waiting: { words: "Waiting", tone: "plain", icon: Hourglass },
  asks: { words: "Waiting for you", tone: "wait", icon: MessageCircleQuestion },
  completed: { words: "Done", tone: "done", icon: Check },
  failed: { words: "Failed", tone: "fail", icon: CircleAlert },
  cancelled: { words: "Cancelled", tone: "plain", icon: Ban },
};

/** The three kinds of thread an agent has. */
export const LANES: Record<Schemas["ThreadView"]["kind"], string> = { work: "Work", reply: "Reply", reflection: "Reflection" };

const OVER = new Set<NodeStatus>(["completed", "failed", "cancelled"]);
export const isOver = (status: NodeStatus): boolean => OVER.has(status);

export function StandingChip({ standing, className }: { standing: Standing; className?: string }) {
  const { words, tone, icon: Icon } = LOOKS[standing];
  return (
    <Chip tone={tone} className={className}>
      <Icon className={cx("size-3.5", standing === "running" && "animate-[spin_2.4s_linear_infinite]")} aria-hidden />
      {words}
    </Chip>
  );
}

/** How long it took, or has been going on. */
export function elapsed(node: Pick<WorkNode, "started_at" | "ended_at">, now: number): string {
  if (!node.started_at) return "";
  const end = node.ended_at ? Date.parse(node.ended_at) : now;
  return duration(Math.max(0, end - Date.parse(node.started_at)));
}

const STOPS: Partial<Record<NonNullable<WorkNode["stop_reason"]>, string>> = {
  answered: "Answered in plain words",
  nothing_to_do: "Found nothing to do",
  turns_spent: "Used up its turns",
  tokens_spent: "Used up its tokens",
  money_spent: "Used up its money",
  calls_spent: "Used up its model calls",
  time_spent: "Used up its time",
  looping: "Repeated itself without progress",
  silent: "Stopped answering",
  unmet: "Something it needed did not succeed",
  skipped: "Left out: something it needed did not succeed",
  no_result: "Ended without a result",
  broken: "Stopped by a fault in agiraph itself",
};
export const stopWords = (reason: WorkNode["stop_reason"]): string => (reason ? (STOPS[reason] ?? "") : "");
