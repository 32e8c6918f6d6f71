import { describe, expect, it } from "vitest";
import type { Event } from "@/live/log";
import { foldTree } from "@/views/tree/folds";
import { layoutTree } from "@/views/tree/layout";
import { rowsAt, treeAt } from "@/views/timeline/replayData";

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
    const node = (id: string, parent_id: string | null, stage_id: string | null = null) => ({ id, parent_id, depends_on: [], stage_id });
    const nodes = [node("n0", null), node("n1", "n0"), node("n2", "n0"), node("n3", "n0", "s1"), node("n4", "n2")];
    const tree = foldTree(nodes, new Map(), (id) => id === "n2");
    const whole = layoutTree(tree.nodes, [{ id: "s1", name: "later" }]);
    const early = treeAt(tree, whole, new Map(), (id) => !["n1", "n3", "n4"].includes(id));
    expect([...early.layout.positions]).toEqual([...whole.positions].filter(([id]) => id === "n0" || id === "n2"));
    expect([...early.layout.lines.keys()]).toEqual(["n2"]);
    expect(early.layout.frames).toEqual([]);
    expect(early.tree.places.get("n2")!.below).toEqual([]);
  });
});
