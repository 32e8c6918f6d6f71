import { describe, expect, it } from "vitest";
import type { Event } from "@/live/log";
import { layoutBoard } from "@/views/board/layout";
import { layoutAt, rowsAt } from "@/views/timeline/replayData";

const event = (seq: number, type: string, data: object): Event => ({ team_id: "t", seq, at: new Date(seq * 1000).toISOString(), type, data }) as unknown as Event;

describe("the replay of a run", () => {
  it("shows an agent's conversation up to the moment and no further", () => {
    const said = (seq: number, text: string) => event(seq, "message.sent", { message_id: `m${seq}`, kind: "chat", sender: "human", recipient: "a1", text, node_id: null });
    const events = [said(501, "First"), said(502, "Second"), said(503, "Third")];
    const words = (seq: number) => rowsAt(events, seq, "a1", "a1").map((row) => row.kind === "message" && row.text);
    expect(words(500)).toEqual([]);
    expect(words(502)).toEqual(["First", "Second"]);
    expect(words(503)).toEqual(["First", "Second", "Third"]);
  });

  it("keeps the place of each card while others do not exist yet", () => {
    const node = (id: string, needs: string[] = []) => ({ id, parent_id: id === "n0" ? null : "n0", depends_on: needs, stage_id: null });
    const whole = layoutBoard([node("n0"), node("n1"), node("n2", ["n1"])], []);
    const early = layoutAt(whole, new Map(), (id) => id !== "n1").layout;
    expect([...early.positions]).toEqual([...whole.positions].filter(([id]) => id !== "n1"));
    expect(early.edges).toEqual([]);
    expect(early.lanes.map((lane) => lane.x)).toEqual(whole.lanes.map((lane) => lane.x));
  });
});
