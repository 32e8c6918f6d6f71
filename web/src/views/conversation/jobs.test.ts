import { expect, test } from "vitest";
import type { WorkNode } from "@/api/client";
import { type Job, jobFacts, jobsOf, jobText, planProgress } from "@/views/conversation/jobs";

const job = (node_id: string, more: Partial<Job> = {}): Job => ({ node_id, parent_id: null, title: node_id, worker: "ada", state: "running", position: null, held_by: null, is_research: false, used: {}, limits: {}, tasks: 0, tasks_done: 0, progress: "", started_at: "2026-01-01T00:00:00Z", ended_at: null, worked_seconds: 60, running_since: "2026-01-01T00:01:00Z", sources: [], ...more });

test("the coordinator shows its own work and all research, and a worker what it does", () => {
  const jobs = [job("goal"), job("part", { parent_id: "goal", worker: "bob" }), job("research", { parent_id: "goal", worker: "eve", is_research: true }), job("over", { ended_at: "2026-01-01T00:01:00Z" }), job("left", { parent_id: "over", worker: "bob" })];

  expect(jobsOf(jobs, { name: "ada" }, true).map((one) => one.node_id)).toEqual(["goal", "research", "left"]);
  expect(jobsOf(jobs, { name: "bob" }, false).map((one) => one.node_id)).toEqual(["part", "left"]);
});

test("a card says who is on it, how long, how far and what it cost", () => {
  const research = job("r", { used: { web_search: 3 }, limits: { web_search: 10, web_fetch: 1 }, tasks: 2, tasks_done: 1 });

  expect(jobFacts(research, 0.125, Date.parse("2026-01-01T00:02:05Z"))).toBe("2m 5s · 1 of 2 tasks done · 3 of 10 searches · 0 of 1 page · $0.13");
  // A wait for the person is not time at work.
  expect(jobFacts(job("w", { running_since: null, worked_seconds: 7 }), null, Date.parse("2026-01-01T01:00:00Z"))).toBe("7.0s");
  expect(jobFacts(job("q", { started_at: null, state: "queued" }), null, 0)).toBe("");
  expect([jobText(research), jobText(job("q", { state: "queued", position: 3 })), jobText(job("q", { state: "queued", position: 1 })), jobText(job("q", { state: "queued", position: 1 }), true)]).toEqual(["ada, runs", "ada, number 3 in the queue", "ada, starts soon", "ada, waits: all work is stopped"]);
  expect(jobText(job("q", { state: "queued", worker: "nobody yet", held_by: "team_paused" }))).toBe("Waits: the team is paused");
  expect(jobText(job("r", { progress: "for now, half of it" }))).toBe("ada, runs: for now, half of it");
});

test.each([
  ["", "ada waits"],
  ["asked the human: Which?", "ada asked you: Which?"],
  ["robin: Write the list (node_1m7nn85b89d5)", "ada waits for robin: Write the list"],
])("a card says in a sentence what its work waits for: %s", (progress, shown) => {
  expect(jobText(job("w", { state: "waiting", progress }))).toBe(shown);
});

test("the plan counts the tasks that the card of the goal counts", () => {
  const node = (id: string, more: Partial<WorkNode> = {}) => ({ id, parent_id: null, status: "running", creator_id: "ada", ...more }) as WorkNode;
  const goal = node("goal");
  const given = [node("list", { parent_id: "goal", status: "failed" }), node("map", { parent_id: "goal" })];
  const others = [node("review", { parent_id: "goal", creator_id: "system" }), node("part", { parent_id: "map", status: "completed" })];

  expect([planProgress([goal]), planProgress([goal, ...given, ...others])]).toEqual([undefined, "1 of 2 delegated tasks done"]);
});
