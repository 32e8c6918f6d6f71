import { expect, it } from "vitest";
import type { MessageRow, Row, TextRow } from "@/live/log";
import { linesOfMates } from "@/views/conversation/LiveRow";

const at = "2026-01-02T10:00:00Z";
const said = (seq: number, sender = "agent_c", recipient = "human"): MessageRow => ({ kind: "message", key: `m${seq}`, seq, at, id: `m${seq}`, sender, recipient, messageKind: "message", text: "x", nodeId: null });
const step = (seq: number): TextRow => ({ kind: "text", key: `t${seq}`, seq, at, nodeId: "n", text: "x" });
const shown = (lines: { agentId: string; rows: readonly Row[]; isLive: boolean }[]) => lines.map(({ agentId, rows, isLive }) => [agentId, rows.map((row) => row.seq), isLive]);

it("a teammate has a line in each part of the conversation that it worked in, and one while it works", () => {
  const rowsByAgent = { a: [step(1), step(3), said(4, "a"), step(7)], b: [step(2), said(5, "b", "a")] };
  const mates = [{ id: "a", isLive: true }, { id: "b", isLive: false }, { id: "c", isLive: true }, { id: "d", isLive: false }];
  const { before, now } = linesOfMates(mates, rowsByAgent, [said(4, "a"), step(5), said(6)]);
  expect([...before].map(([key, lines]) => [key, shown(lines)])).toEqual([
    ["m4", [["a", [1, 3], false], ["b", [2], false]]],
    ["m6", [["b", [5], false]]],
  ]);
  expect(shown(now)).toEqual([["a", [7], true], ["c", [], true]]);
  const many = Array.from({ length: 9 }, (_, n) => ({ id: `w${n}`, isLive: false }));
  expect(linesOfMates(many, Object.fromEntries(many.map(({ id }, n) => [id, [step(n + 1)]])), []).now).toHaveLength(5);
});
