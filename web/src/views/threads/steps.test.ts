import { describe, expect, it } from "vitest";
import type { Event } from "@/live/log";
import { callWorkedMs, keyOfTurn, MAX_DRAWN_PAUSE_MS, modelFacts, type ModelStep, readingsOf, thoughtsLabel, timelineBars, toSteps, type Turn } from "@/views/threads/steps";

const turn = (seq: number, role: string, second: number, { began = second, ...more }: Partial<Turn> & { began?: number } = {}): Turn => ({
  seq, role, text: `${role} ${seq}`, at: new Date(second * 1000).toISOString(), started_at: new Date(1000 * began).toISOString(), waited_s: 0, ref: null, calls: [], failed: false, model: null, input_tokens: 0, output_tokens: 0, usd: null, thinking: "", thinking_tokens: 0, cached_tokens: 0, is_estimated: false, served_model: "", refusal: "", ...more,
});
const call = (id: string, name: string) => ({ id, name, arguments: {} });

describe("steps", () => {
  const thread = [
    turn(1, "system", 0),
    turn(2, "user", 0),
    turn(3, "assistant", 4, { began: 0, calls: [call("a", "web_search"), call("b", "bash")], model: "m" }),
    turn(4, "tool", 6, { began: 4, ref: "a" }),
    turn(5, "tool", 9, { began: 6, ref: "b", failed: true }),
    turn(6, "assistant", 10, { began: 9 }),
  ];

  it("joins calls and their results", () => {
    const found = toSteps(thread);
    expect(found.map((step) => step.kind)).toEqual(["text", "text", "model", "model"]);
    expect(found[2]).toMatchObject({ startedAt: 0, endedAt: 4000, calls: [{ name: "web_search", endedAt: 6000 }, { name: "bash", failed: true, endedAt: 9000 }] });
    expect(found[3]).toMatchObject({ startedAt: 9000, endedAt: 10_000 });
  });

  it("are found by a turn: a result by its call, a reply by the call with the words or by its own", () => {
    const found = toSteps([...thread, turn(7, "assistant", 12, { text: "Boil tea", calls: [{ ...call("c", "bash"), arguments: { command: "ls" } }, { ...call("d", "write_file"), arguments: { content: "A Kettle" } }] })]);
    expect([4, 5, 6, 2, 9].map((seq) => keyOfTurn(found, seq, ["tea"]))).toEqual(["3:a", "3:b", "6", "2", undefined]);
    expect([["tea"], ["kettle"], ["other"]].map((words) => keyOfTurn(found, 7, words))).toEqual(["7", "7:d", "7:c"]);
  });

  it("say how a call was read, if an event of this thread says it", () => {
    const calls = [{ ...call("a", "bash"), reading: "Its arguments were text." }, { ...call("b", "bash"), reading: null }];
    const event = (thread_id: string, seq: number) => ({ type: "turn.added", data: { thread_id, seq, calls } }) as unknown as Event;

    const found = toSteps(thread, readingsOf([event("mine", 3), event("other", 6), { type: "node.started" } as Event], "mine"));

    expect((found[2] as ModelStep).calls.map(({ reading }) => reading)).toEqual(["Its arguments were text.", ""]);
  });

  it("say how much a model thought, and that the cost includes it", () => {
    const [shown, hidden, none] = toSteps([
      turn(1, "assistant", 0, { thinking: "One two\nthree. ", thinking_tokens: 1200 }),
      turn(2, "assistant", 1, { thinking_tokens: 64 }),
      turn(3, "assistant", 2),
    ]) as ModelStep[];
    expect(shown!.thoughts).toBe("One two\nthree.");
    expect([shown!, hidden!, none!].map(thoughtsLabel)).toEqual([
      "Reasoning: 3 words · 1.2k tokens, in the cost of this step",
      "Reasoning, not shown by the model · 64 tokens, in the cost of this step",
      "",
    ]);
    expect(thoughtsLabel({ thoughts: "Hm.", thoughtTokens: 0 })).toBe("Reasoning: 1 word");
  });

  it("mark numbers that were estimated, and count what came from the cache", () => {
    const [known, estimated] = toSteps([
      turn(1, "assistant", 0, { model: "m", input_tokens: 9000, output_tokens: 20, cached_tokens: 8000, usd: 0.5 }),
      turn(2, "assistant", 1, { began: 0, model: "m", input_tokens: 100, output_tokens: 20, is_estimated: true, usd: 0.5 }),
    ]) as ModelStep[];
    expect([modelFacts(known!), modelFacts(estimated!)]).toEqual(["m · 9.0k in (8.0k cached), 20 out · $0.50", "m · 1.0s · about 100 in, 20 out · about $0.50"]);
  });

  it("keeps calls without a result open, and shows results without a call", () => {
    const found = toSteps([turn(1, "assistant", 0, { calls: [call("a", "x")] }), turn(2, "tool", 1, { ref: "other" })]);
    expect(found[0]).toMatchObject({ calls: [{ endedAt: null }] });
    expect(found[1]).toMatchObject({ kind: "text", role: "tool" });
    expect(timelineBars(found, 3000).bars[1]).toMatchObject({ isOpen: true, ms: 3000 });
  });

  it("puts all bars on one timeline", () => {
    const { bars: drawn, pausedMs } = timelineBars(toSteps(thread), 0);
    expect(drawn.map(({ label, from, to }) => [label, from, to])).toEqual([["m", 0, 0.4], ["web_search", 0.4, 0.6], ["bash", 0.6, 0.9], ["model", 0.9, 1]]);
    expect(pausedMs).toBe(0);
  });

  it("count no wait as work: neither for a person nor for a server that is away", () => {
    const night = toSteps([
      turn(1, "user", 0),
      turn(2, "assistant", 5, { began: 0, calls: [call("q", "ask_human"), call("c", "bash")] }),
      turn(3, "tool", 40_005, { began: 5, waited_s: 39_999, ref: "q" }),
      turn(4, "tool", 40_010, { began: 40_005, waited_s: 3, ref: "c" }),
      turn(5, "assistant", 40_012, { began: 40_010 }),
    ]);
    const { bars: drawn, busyMs, pausedMs } = timelineBars(night, 0);
    expect([busyMs, pausedMs]).toEqual([5000 + 1000 + 2000 + 2000, 40_002_000]);
    expect(drawn.map((bar) => bar.ms)).toEqual([5000, 1000, 2000, 2000]);
    expect((night[1] as ModelStep).calls.map((one) => callWorkedMs(one, 0))).toEqual([1000, 2000]);
    // A long pause is drawn short.
    expect(drawn[1]!.from - drawn[0]!.to).toBeCloseTo(MAX_DRAWN_PAUSE_MS / 33_000);
  });

  it("let an open call of a task that waits take no time", () => {
    const found = toSteps([turn(1, "assistant", 0, { calls: [call("a", "bash")] })]);
    expect(timelineBars(found, null)).toMatchObject({ busyMs: 0, pausedMs: 0 });
    expect(timelineBars(found, 3000)).toMatchObject({ busyMs: 3000 });
  });

  it("has nothing to draw without steps", () => expect(timelineBars([], 0).bars).toEqual([]));
});
