/** Phases: what a task's time went into, with the label, the words and the paint of each. */
import type { Schemas } from "@/api/client";

export type Span = Schemas["SpanView"];
export type Tick = Schemas["TickView"];
export type Phase = Span["phase"];

interface PhaseStyle {
  label: string;
  /** The token of its colour. */
  colour: string;
  /** Waits are striped, so that they can be told from work without seeing the colour. */
  isStriped: boolean;
  isWait: boolean;
}
export const PHASES: Record<Phase, PhaseStyle> = {
  model: { label: "Thinking", colour: "--work-dot", isStriped: false, isWait: false },
  tool: { label: "Tools", colour: "--ink-2", isStriped: false, isWait: false },
  program: { label: "Program", colour: "--ink-2", isStriped: false, isWait: false },
  other: { label: "Runtime", colour: "--control", isStriped: false, isWait: false },
  person: { label: "Waiting for you", colour: "--wait-dot", isStriped: true, isWait: true },
  child: { label: "Waiting for other work", colour: "--control", isStriped: true, isWait: true },
  teammate: { label: "Waiting for a teammate", colour: "--control", isStriped: true, isWait: true },
  timer: { label: "Waiting for a time", colour: "--line-2", isStriped: true, isWait: true },
  provider: { label: "Provider not reachable", colour: "--fail-dot", isStriped: true, isWait: true },
  budget: { label: "Waiting for tomorrow's budget", colour: "--wait-dot", isStriped: true, isWait: true },
  interrupted: { label: "Interrupted", colour: "--fail-dot", isStriped: false, isWait: true },
  queued: { label: "Queued", colour: "--line-2", isStriped: false, isWait: true },
};
/** The order of the legend. */
export const PHASE_ORDER: readonly Phase[] = ["model", "tool", "program", "other", "person", "child", "teammate", "timer", "provider", "budget", "interrupted", "queued"];

export const startOf = (span: Span): number => Date.parse(span.start);
export const endOf = (span: Span, now: number): number => (span.end === null ? Math.max(now, startOf(span)) : Date.parse(span.end));
export const keyOf = (span: Span): string => `${span.node_id}:${span.number}`;
