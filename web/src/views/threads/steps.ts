/** Steps: the turns of a thread as what happened one after the other, with how long each took. */
import type { Schemas } from "@/api/client";

export type Turn = Schemas["TurnView"];

export interface ToolStep {
  kind: "tool";
  key: string;
  name: string;
  arguments: Record<string, unknown>;
  startedAt: number;
  /** Null while it has not answered. */
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
export interface WordStep {
  kind: "words";
  key: string;
  seq: number;
  role: "system" | "user" | "tool";
  at: number;
  text: string;
}
export type Step = ModelStep | WordStep;

export function steps(turns: readonly Turn[]): Step[] {
  const found: Step[] = [];
  const open = new Map<string, ToolStep>();
  let before: number | null = null;
  for (const turn of turns) {
    const at = Date.parse(turn.at);
    if (turn.role === "assistant") {
      const calls = turn.calls.map(
        (call): ToolStep => ({ kind: "tool", key: `${turn.seq}:${call.id}`, name: call.name, arguments: call.arguments, startedAt: at, endedAt: null, failed: false, text: "" }),
      );
      turn.calls.forEach((call, place) => open.set(call.id, calls[place]!));
      found.push({
        kind: "model",
        key: String(turn.seq),
        seq: turn.seq,
        // A model is asked as soon as there is something new to show it.
        startedAt: before ?? at,
        endedAt: at,
        text: turn.text,
        model: turn.model,
        inputTokens: turn.input_tokens,
        outputTokens: turn.output_tokens,
        usd: turn.usd,
        calls,
      });
    } else {
      const call = turn.role === "tool" && turn.ref ? open.get(turn.ref) : undefined;
      if (call) {
        call.endedAt = at;
        call.failed = turn.failed;
        call.text = turn.text;
        open.delete(turn.ref!);
      } else {
        found.push({ kind: "words", key: String(turn.seq), seq: turn.seq, role: turn.role === "system" ? "system" : turn.role === "tool" ? "tool" : "user", at, text: turn.text });
      }
    }
    before = at;
  }
  return found;
}

export interface Bar {
  key: string;
  label: string;
  kind: "model" | "tool";
  failed: boolean;
  isOpen: boolean;
  /** Parts of the whole, 0 to 1. */
  from: number;
  to: number;
  ms: number;
}

/** Longer pauses are drawn as this: whoever waits a night for an answer should not see nothing else. */
export const LONGEST_PAUSE_MS = 20_000;

/** The steps on a line of time on which long pauses are cut short. */
export function bars(all: readonly Step[], now: number): { bars: Bar[]; busyMs: number; pausedMs: number } {
  const spans = all.flatMap((step): { key: string; label: string; kind: "model" | "tool"; failed: boolean; isOpen: boolean; a: number; b: number }[] =>
    step.kind === "words"
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
  const place = new Map<number, number>();
  let drawn = 0;
  let pausedMs = 0;
  edges.forEach((edge, at) => {
    if (at > 0) {
      const gap = edge - edges[at - 1]!;
      const shown = Math.min(gap, LONGEST_PAUSE_MS);
      pausedMs += gap - shown;
      drawn += shown;
    }
    place.set(edge, drawn);
  });
  const whole = Math.max(drawn, 1);
  return {
    bars: spans.map(({ a, b, ...span }) => ({ ...span, from: place.get(a)! / whole, to: place.get(b)! / whole, ms: b - a })),
    busyMs: spans.reduce((sum, { a, b }) => sum + (b - a), 0),
    pausedMs,
  };
}
