import { describe, expect, it } from "vitest";
import { messageLabel, pointsText, type NodeStatus, stoppedTeamText } from "@/lib/endings";

const label = (kind: "failure" | "result" | "message" | "report", status: NodeStatus | null, hasDoubts = false) => messageLabel(kind, { status, stopReason: status === "partial" ? "money_spent" : null, hasDoubts });

describe("the label of a message", () => {
  it("tells a partial result from a failure", () => {
    expect(label("failure", "partial")).toEqual({ text: "Partial result: stopped at a limit (money)", tone: "wait" });
    expect(label("failure", "failed")).toEqual({ text: "Failure", tone: "fail" });
    expect(label("failure", null)).toEqual({ text: "Failure", tone: "fail" });
  });

  it("names a limit that has no name of its own without one", () => {
    expect(messageLabel("failure", { status: "partial", stopReason: null, hasDoubts: false }).text).toBe("Partial result: stopped at a limit");
  });

  it("counts the points that are not confirmed", () => {
    expect([1, 3].map(pointsText)).toEqual(["1 point not confirmed", "3 points not confirmed"]);
  });

  it("says doubts, and nothing about an ordinary message", () => {
    expect(label("result", "completed", true)).toEqual({ text: "Done, with doubts", tone: "wait" });
    expect([label("result", "completed").text, label("report", null).text, label("message", "running").text]).toEqual(["Result", "Report", ""]);
  });
});

describe("the label of a report", () => {
  it("says that it found nothing", () => {
    expect(messageLabel("report", { status: "failed", stopReason: "not_reached", hasDoubts: false })).toEqual({ text: "Nothing found", tone: "wait" });
  });
});

describe("a team that stopped", () => {
  it("says that its goal was not reached, unless a person stopped it", () => {
    expect([stoppedTeamText("failed"), stoppedTeamText("partial"), stoppedTeamText("cancelled")]).toEqual(["The team stopped: its goal failed", "The team stopped: its goal has a partial result", "The team stopped: its goal was cancelled"]);
    expect([stoppedTeamText(null), stoppedTeamText(undefined)]).toEqual(["The team was stopped", "The team was stopped"]);
  });
});
