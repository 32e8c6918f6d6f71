/** Steps: a thread's turns as model calls with their tool calls, with times; and the bars of the timeline. */
import type { Schemas } from "@/api/client";

export type Turn = Schemas["TurnView"];

export interface ToolStep {
  kind: "tool";
  key: string;
  name: string;
  arguments: Record<string, unknown>;
  startedAt: number;
  /** Null until the call has a result. */
  endedAt: number | null;
  failed: boolean;
  text: string;
}
export interface ModelStep {
  kind: "model";
  key: string;
  seq: number;
  startedAt: number;
  endedAt: number;
  text: string;
  model: string | null;
  inputTokens: number;
  outputTokens: number;
  usd: number | null;
  calls: ToolStep[];
}
export interface TextStep {
  kind: "text";
  key: string;
  seq: number;
  role: "system" | "user" | "tool";
  at: number;
  text: string;
}
export type Step = ModelStep | TextStep;

export function toSteps(turns: readonly Turn[]): Step[] {
  const steps: Step[] = [];
  const openCalls = new Map<string, ToolStep>();
  let previousAt: number | null = null;
  for (const turn of turns) {
    const at = Date.parse(turn.at);
    if (turn.role === "assistant") {
      const calls = turn.calls.map(
        (call): ToolStep => ({ kind: "tool", key: `${turn.seq}:${call.id}`, name: call.name, arguments: call.arguments, startedAt: at, endedAt: null, failed: false, text: "" }),
      );
      turn.calls.forEach((call, index) => openCalls.set(call.id, calls[index]!));
      steps.push({
        kind: "model",
        key: String(turn.seq),
        seq: turn.seq,
        // A turn has no start time. The model is called right after the previous turn, so that turn's time is the start.
        startedAt: previousAt ?? at,
        endedAt: at,
        text: turn.text,
        model: turn.model,
        inputTokens: turn.input_tokens,
        outputTokens: turn.output_tokens,
        usd: turn.usd,
        calls,
      });
    } else {
      const call = turn.role === "tool" && turn.ref ? openCalls.get(turn.ref) : undefined;
      if (call) {
        call.endedAt = at;
        call.failed = turn.failed;
        call.text = turn.text;
        openCalls.delete(turn.ref!);
      } else {
        steps.push({ kind: "text", key: String(turn.seq), seq: turn.seq, role: turn.role === "system" ? "system" : turn.role === "tool" ? "tool" : "user", at, text: turn.text });
      }
    }
    previousAt = at;
  }
  return steps;
}

export interface Bar {
  key: string;
  label: string;
  kind: "model" | "tool";
  failed: boolean;
  isOpen: boolean;
  /** Start and end as fractions of the timeline, 0 to 1. */
  from: number;
  to: number;
  ms: number;
}

/** A longer pause is drawn with this length. A night without an answer would otherwise leave no room for the steps. */
export const MAX_DRAWN_PAUSE_MS = 20_000;

/** Return the bars of the timeline. Long pauses are shortened; `pausedMs` is the time left out. */
export function timelineBars(all: readonly Step[], now: number): { bars: Bar[]; busyMs: number; pausedMs: number } {
  const spans = all.flatMap((step): { key: string; label: string; kind: "model" | "tool"; failed: boolean; isOpen: boolean; a: number; b: number }[] =>
    step.kind === "text"
      ? []
      : [
          { key: step.key, label: step.model ?? "model", kind: "model", failed: false, isOpen: false, a: step.startedAt, b: step.endedAt },
          ...step.calls.map((call) => ({
            key: call.key,
            label: call.name,
            kind: "tool" as const,
            failed: call.failed,
            isOpen: call.endedAt === null,
            a: call.startedAt,
            b: call.endedAt ?? Math.max(now, call.startedAt),
          })),
        ],
  );
  if (spans.length === 0) return { bars: [], busyMs: 0, pausedMs: 0 };
  const edges = [...new Set(spans.flatMap(({ a, b }) => [a, b]))].sort((a, b) => a - b);
  const positions = new Map<number, number>();
  let totalMs = 0;
  let pausedMs = 0;
  edges.forEach((edge, index) => {
    if (index > 0) {
      const gapMs = edge - edges[index - 1]!;
      const drawnMs = Math.min(gapMs, MAX_DRAWN_PAUSE_MS);
      pausedMs += gapMs - drawnMs;
      totalMs += drawnMs;
    }
    positions.set(edge, totalMs);
  });
  const scale = Math.max(totalMs, 1);
  return {
    bars: spans.map(({ a, b, ...span }) => ({ ...span, from: positions.get(a)! / scale, to: positions.get(b)! / scale, ms: b - a })),
    busyMs: spans.reduce((sum, { a, b }) => sum + (b - a), 0),
    pausedMs,
  };
}
