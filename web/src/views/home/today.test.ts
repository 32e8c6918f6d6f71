import { expect, it } from "vitest";
import type { MemberOverview, TeamOverview } from "@/api/client";
import { atWork, endedToday, whoWorks } from "@/views/home/today";

const team = (name: string, more: Partial<TeamOverview>): TeamOverview => ({ id: name, name, state: "running", active_at: "2026-01-05T10:00:00Z", ended_at: null, members: [], ...more }) as TeamOverview;
const names = (teams: TeamOverview[]) => teams.map((one) => one.name);
const member = (name: string, status: MemberOverview["status"] = "working"): MemberOverview => ({ id: name, name, role: "", status, unread: 0, questions: 0 });

it("teams at work are listed with those that run first, and what moved last before the rest", () => {
  const teams = [team("asks", { state: "needs_you" }), team("old", { active_at: "2026-01-05T08:00:00Z" }), team("paused", { state: "paused" }), team("done", { state: "done" }), team("new", {})];
  expect(names(atWork(teams))).toEqual(["new", "old", "asks", "paused"]);
});

it("a team ended today if its goal did, on the person's day, and no other work goes on", () => {
  const noon = new Date(2026, 0, 5, 12).getTime();
  const at = (day: number, hour: number) => new Date(2026, 0, day, hour).toISOString();
  const teams = [
    team("early", { state: "done", ended_at: at(5, 1) }),
    team("yesterday", { state: "done", ended_at: at(4, 23) }),
    team("late", { state: "failed", ended_at: at(5, 11) }),
    team("goes on", { state: "running", ended_at: at(5, 10) }),
    team("stopped before it began", { state: "stopped" }),
  ];
  expect(names(endedToday(teams, noon))).toEqual(["late", "early"]);
});

it("who works is told by name, and by number where there are many", () => {
  const told = (...members: MemberOverview[]) => whoWorks({ members, state: "running" });
  expect(told(member("ada"))).toBe("Ada works");
  expect(told(member("ada"), member("bob", "idle"), member("cai"))).toBe("Ada and Cai work");
  expect(told(...["a", "b", "c", "d", "e"].map((name) => member(name)))).toBe("A, B, C and 2 more work");
  expect(told(member("ada", "queued"))).toBe("Starts soon");
  expect(told(member("ada", "waiting"))).toBe("Waits for its next step");
  expect(whoWorks({ members: [member("ada", "waiting_for_you")], state: "needs_you" })).toBe("Waits for your answer");
});
