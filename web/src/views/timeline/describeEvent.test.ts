import { expect, test } from "vitest";
import type { Event } from "@/live/log";
import { describeEvent } from "@/views/timeline/describeEvent";

const names = { agent: (id: string) => ({ a1: "ada" })[id], node: () => undefined };
const said = (type: string, data: object): string => describeEvent({ team_id: "t", seq: 1, at: "2026-01-01T00:00:00Z", type, data } as unknown as Event, names);

test("a changed budget is told by its amounts and by who changed it", () => {
  expect(said("node.extended", { by: "human", added: { usd: 3, turns: 10 } })).toBe("You raised the budget by $3.00 and 10 turns");
  expect(said("node.extended", { by: "a1", added: { tokens: -2000 } })).toBe("Ada lowered the budget by 2.0k tokens");
  expect(said("node.extended", { by: "human", added: {} })).toBe("You changed the limits");
});

test("an end by somebody and a new start are told once, by their names", () => {
  expect(said("node.cancelled", { by: "human", reason: "cancelled", result: "human stopped it." })).toBe("Cancelled by you");
  expect(said("node.cancelled", { by: "a1", reason: "cancelled", result: "ada gave it up." })).toBe("Cancelled by Ada");
  expect(said("node.cancelled", { reason: "cancelled", result: "What needed it has ended." })).toBe("Cancelled: What needed it has ended.");
  expect(said("node.assigned", { agent_id: "a1", by: "human" })).toBe("Started again by you");
});

test("why there is no briefing is told in plain words, also as the result of looking back", () => {
  expect(said("briefing.decided", { sent: false, reason: "already delivered" })).toBe("No briefing: you have the result already");
  expect(said("node.completed", { result: "Not briefed: told before: msg_1" })).toBe("Done: no briefing: you were told before");
  expect(said("node.completed", { result: "Briefed: Beans" })).toBe("Done: sent the briefing Beans");
});

test("what was kept of a thread, and an emergency stop, are told in plain words", () => {
  expect(said("thread.harvested", { insights: 2 })).toBe("Knowledge saved from a thread: 2 insights");
  expect(said("thread.harvested", { insights: 0 })).toBe("Reflection on a thread: nothing new to keep");
  expect(said("work.stopped", { by: "admin" })).toBe("All work of all teams was stopped");
});

test("a question that closed with its work is not told as answered", () => {
  expect(said("question.answered", { text: "Closed: the work that asked has ended.", decision: null, is_closed: true })).toBe("Not answered: Closed: the work that asked has ended.");
  expect(said("question.answered", { text: "Blue", decision: null })).toBe("Answered: Blue");
});
