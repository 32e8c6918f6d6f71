/** Steps: a thread's turns as model calls with their tool calls, with times; and the bars of the timeline. */
import type { Schemas } from "@/api/client";
import type { Event } from "@/live/log";
import { compactNumber, duration, money, plural } from "@/lib/format";

export type Turn = Schemas["TurnView"];

export interface ToolStep {
  kind: "tool";
  key: string;
  name: string;
  arguments: Record<string, unknown>;
  /** When its agent could begin with it: after the reply, or after the result of the call before it. */
  startedAt: number;
  /** Null until the call has a result. */
  endedAt: number | null;
  /** How long nobody worked on it: it waited for a person or a teammate, or no server ran. */
  waitedMs: number;
  failed: boolean;
  text: string;
  /** The turn with its result; null until there is one. */
  resultSeq: number | null;
  /** How the call was read, if the model wrote it in another form; empty if nothing was repaired or it is not known. */
  reading: string;
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
  /** The tokens of the input that came from the vendor's cache. */
  cachedTokens: number;
  /** Whether the tokens were estimated because the vendor did not count them. */
  isEstimated: boolean;
  usd: number | null;
  /** What the model thought before it replied; empty if the vendor does not show it. */
  thoughts: string;
  thoughtTokens: number;
  /** Why the vendor withheld the rest of the reply; empty if it is whole. */
  refusal: string;
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

/** Return how the calls of a thread were read, by the keys of their steps. Only events say it, so older calls have none. */
export function readingsOf(events: readonly Event[], thread: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const event of events) {
    if (event.type !== "turn.added" || event.data.thread_id !== thread) continue;
    for (const call of event.data.calls) if (call.reading) found.set(`${event.data.seq}:${call.id}`, call.reading);
  }
  return found;
}

/** Return how long a turn took, without waits. */
const workedMs = (turn: Turn): number => Math.max(0, Date.parse(turn.at) - Date.parse(turn.started_at) - 1000 * turn.waited_s);

/** Return how long a call was worked on, until its end or until now. */
export const callWorkedMs = ({ startedAt, endedAt, waitedMs }: ToolStep, now: number): number => Math.max(0, (endedAt ?? Math.max(now, startedAt)) - startedAt - waitedMs);

export function toSteps(turns: readonly Turn[], readings: ReadonlyMap<string, string> = new Map()): Step[] {
  const steps: Step[] = [];
  const openCalls = new Map<string, ToolStep>();
  for (const turn of turns) {
    const at = Date.parse(turn.at);
    if (turn.role === "assistant") {
      const calls = turn.calls.map(
        (call): ToolStep => ({ kind: "tool", key: `${turn.seq}:${call.id}`, name: call.name, arguments: call.arguments, startedAt: at, endedAt: null, waitedMs: 0, failed: false, text: "", resultSeq: null, reading: readings.get(`${turn.seq}:${call.id}`) ?? "" }),
      );
      turn.calls.forEach((call, index) => openCalls.set(call.id, calls[index]!));
      steps.push({
        kind: "model",
        key: String(turn.seq),
        seq: turn.seq,
        startedAt: at - workedMs(turn),
        endedAt: at,
        text: turn.text,
        model: turn.served_model && turn.model ? `${turn.model} (answered by ${turn.served_model})` : turn.model,
        inputTokens: turn.input_tokens,
        outputTokens: turn.output_tokens,
        cachedTokens: turn.cached_tokens,
        isEstimated: turn.is_estimated,
        usd: turn.usd,
        thoughts: turn.thinking.trim(),
        thoughtTokens: turn.thinking_tokens,
        refusal: turn.refusal,
        calls,
      });
    } else {
      const call = turn.role === "tool" && turn.ref ? openCalls.get(turn.ref) : undefined;
      if (call) {
        call.startedAt = Date.parse(turn.started_at);
        call.endedAt = at;
        call.waitedMs = 1000 * turn.waited_s;
        call.failed = turn.failed;
        call.text = turn.text;
        call.resultSeq = turn.seq;
        openCalls.delete(turn.ref!);
        // Calls are made one after the other: the next one starts now.
        for (const next of openCalls.values()) next.startedAt = at;
      } else {
        steps.push({ kind: "text", key: String(turn.seq), seq: turn.seq, role: turn.role === "system" ? "system" : turn.role === "tool" ? "tool" : "user", at, text: turn.text });
      }
    }
  }
  return steps;
}

/** Return the key of the step or tool call that shows a turn. Of a reply with calls it is the call that contains the words, unless the reply itself does. */
export function keyOfTurn(all: readonly Step[], seq: number, words: readonly string[]): string | undefined {
  const holdsWords = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  for (const step of all) {
    const calls = step.kind === "model" ? step.calls : [];
    const answered = calls.find((call) => call.resultSeq === seq);
    if (answered) return answered.key;
    if (step.seq !== seq) continue;
    const called = calls.find((call) => holdsWords(`${call.name} ${Object.values(call.arguments).join(" ")}`));
    return holdsWords(step.text) ? step.key : (called ?? calls[0] ?? step).key;
  }
  return undefined;
}

const countWords = (text: string): number => text.split(/\s+/).filter(Boolean).length;

/** Return the line that stands for the thoughts of a step; empty if it has none. Thoughts are output tokens, so the cost of the step includes them. */
export function thoughtsLabel({ thoughts, thoughtTokens }: Pick<ModelStep, "thoughts" | "thoughtTokens">): string {
  if (!thoughts && thoughtTokens === 0) return "";
  const words = thoughts ? `Reasoning: ${plural(countWords(thoughts), "word")}` : "Reasoning, not shown by the model";
  return thoughtTokens > 0 ? `${words} · ${compactNumber(thoughtTokens)} tokens, in the cost of this step` : words;
}

/** Return the facts of a model call: model, duration, tokens and cost. Estimated numbers are marked. */
export function modelFacts(step: ModelStep): string {
  const about = step.isEstimated ? "about " : "";
  const cached = step.cachedTokens > 0 ? ` (${compactNumber(step.cachedTokens)} cached)` : "";
  return [
    step.model,
    step.endedAt > step.startedAt && duration(step.endedAt - step.startedAt),
    step.inputTokens + step.outputTokens > 0 && `${about}${compactNumber(step.inputTokens)} in${cached}, ${compactNumber(step.outputTokens)} out`,
    step.usd !== null && `${about}${money(step.usd)}`,
  ]
    .filter(Boolean)
    .join(" · ");
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

/** Return the bars of the timeline. Long spans are shortened. `pausedMs` is the time between the bars: waits for people and teammates, and time without a server. `now` is null while nobody works on the thread: its open calls wait. */
export function timelineBars(all: readonly Step[], now: number | null): { bars: Bar[]; busyMs: number; pausedMs: number } {
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
            // A call that waited was worked on after its wait.
            a: (call.endedAt ?? Math.max(now ?? 0, call.startedAt)) - (call.endedAt === null && now === null ? 0 : callWorkedMs(call, now ?? 0)),
            b: call.endedAt ?? Math.max(now ?? 0, call.startedAt),
          })),
        ],
  );
  if (spans.length === 0) return { bars: [], busyMs: 0, pausedMs: 0 };
  const covers = new Map<number, number>();
  for (const { a, b } of spans) {
    covers.set(a, (covers.get(a) ?? 0) + 1);
    covers.set(b, (covers.get(b) ?? 0) - 1);
  }
  const edges = [...new Set(spans.flatMap(({ a, b }) => [a, b]))].sort((a, b) => a - b);
  const positions = new Map<number, number>();
  let totalMs = 0;
  let pausedMs = 0;
  let covering = 0;
  edges.forEach((edge, index) => {
    if (index > 0) {
      const gapMs = edge - edges[index - 1]!;
      if (covering === 0) pausedMs += gapMs;
      totalMs += Math.min(gapMs, MAX_DRAWN_PAUSE_MS);
    }
    positions.set(edge, totalMs);
    covering += covers.get(edge)!;
  });
  const scale = Math.max(totalMs, 1);
  return {
    bars: spans.map(({ a, b, ...span }) => ({ ...span, from: positions.get(a)! / scale, to: positions.get(b)! / scale, ms: b - a })),
    busyMs: spans.reduce((sum, { a, b }) => sum + (b - a), 0),
    pausedMs,
  };
}
