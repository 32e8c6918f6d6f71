import { describe, expect, it } from "vitest";
import type { WorkNode } from "@/api/client";
import type { Event } from "@/live/log";
import { applyEvents } from "@/views/board/applyEvents";

const node = (id: string): WorkNode => ({ id, status: "pending", assignee_id: null, assignee: null, started_at: null, ended_at: null, attempt: 0, waiting_reason: null, result: null }) as unknown as WorkNode;
const event = (type: string, data: object): Event => ({ team_id: "t", seq: 1, at: "2026-01-01T10:00:00Z", type, data }) as Event;

describe("applyEvents", () => {
  const board = [node("n1"), node("n2")];
  it("follows a task from assignment to its end, and keeps the other nodes", () => {
    const now = applyEvents(board, [
      event("node.assigned", { node_id: "n1", agent_id: "a1", agent: "ada" }),
      event("node.started", { node_id: "n1", agent_id: "a1", attempt: 1 }),
      event("node.waiting", { node_id: "n1", on: [], reason: "asked the human" }),
    ]);
    expect(now[0]).toMatchObject({ status: "waiting", assignee: "ada", attempt: 1, started_at: "2026-01-01T10:00:00Z", waiting_reason: "asked the human" });
    expect(now[1]).toBe(board[1]);
    expect(applyEvents(now, [event("node.completed", { node_id: "n1", reason: "published", result: "done" })])[0]).toMatchObject({ status: "completed", result: "done", waiting_reason: null });
  });
  it("knows who has stopped a task, and that it waits for others again", () => {
    const stopped = applyEvents(board, [event("node.cancelled", { node_id: "n1", reason: "cancelled", result: "human stopped it.", by: "human" })]);
    expect(stopped[0]).toMatchObject({ status: "cancelled", canceller_id: "human", result: null });
    expect(applyEvents(stopped, [event("node.changed", { node_id: "n1", changed: { status: "pending" } })])[0]).toMatchObject({ status: "pending" });
  });
  it("ignores other events", () => {
    expect(applyEvents(board, [event("message.sent", { node_id: "n1" }), event("node.created", { node_id: "n9" })])).toEqual(board);
    expect(applyEvents(board, [event("turn.added", { node_id: "n1" })])).toBe(board);
  });
});
