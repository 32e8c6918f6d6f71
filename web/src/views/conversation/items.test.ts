import { describe, expect, it } from "vitest";
import type { Message } from "@/api/client";
import type { MessageRow, NodeSummary, Row, SystemRow, ToolsRow } from "@/live/log";
import type { UnsentMessage } from "@/live/store";
import { stepsText } from "@/views/conversation/folding";
import { buildItems, firstUnread, type ItemSources } from "@/views/conversation/items";

const message = (id: string, at: string, more: Partial<Message> = {}): Message => ({
  id, team_id: "t", seq: 1, sender: "agent_a", sender_name: "a", recipient: "human", kind: "message", title: "", text: id, options: [], node_id: null,
  in_reply_to: null, said_to: null, edits: null, edited_by: null, client_id: null, attachments: [], created_at: at, seen_at: null, answered_at: null, decision: null, rating: null, call: null, reason: "", risks: [], stopped_by: null, fault: null, fault_of: null, sources: [], consulted: [], waits_until: null, doubts: [], acts: [], ...more,
});
const row = (id: string, at: string, more: Partial<MessageRow> = {}): MessageRow => ({
  kind: "message", key: id, seq: 1, at, id, sender: "agent_a", recipient: "human", messageKind: "message", text: id, nodeId: null, ...more,
});
const unsent = (text: string, clientId = "c1"): UnsentMessage => ({ clientId, agentId: "agent_a", text, at: "2026-01-02T10:00:00Z", mode: "send", state: "sending", reason: "", attachments: [] });
const sources = (more: Partial<ItemSources>): ItemSources => ({ messages: [], rows: [], unsent: [], hasEarlier: false, firstUnread: null, view: "conversation", nodes: {}, opened: new Map(), ...more });
const keys = (given: Partial<ItemSources>) => buildItems(sources(given)).map((item) => item.key);

describe("the items of a conversation", () => {
  it("folds a message that was edited, whoever says so first, and opens it where the page leads to it", () => {
    const said = ["m1", "m2", "m3"].map((id) => row(id, "2026-01-02T10:00:00Z", { sender: "human", recipient: "agent_a" }));
    const edited = (given: Partial<ItemSources>) => buildItems(sources({ rows: said, ...given })).flatMap((item) => (item.kind === "row" ? [`${item.key} ${item.edited}`] : []));
    expect(edited({})).toEqual(["m1 no", "m2 no", "m3 no"]);
    expect(edited({ unsent: [{ ...unsent("m4"), edits: "m3" }] })).toEqual(["m1 no", "m2 no", "m3 folded"]);
    expect(edited({ unsent: [{ ...unsent("m4"), edits: "m3", state: "refused" }] })).toEqual(["m1 no", "m2 no", "m3 no"]);
    expect(edited({ rows: [said[0]!, { ...said[1]!, edits: "m1" }], at: "m1" })).toEqual(["m1 open", "m2 no"]);
    const stored = said.map(({ id, at }) => message(id, at, { sender: "human", edited_by: id === "m2" ? "m3" : null }));
    expect(edited({ messages: stored, opened: new Map([["m2", true]]) })).toEqual(["m1 no", "m2 open", "m3 no"]);
  });

  it("merges messages and rows by time, each once, below their days", () => {
    const messages = [message("m1", "2026-01-01T10:00:00Z"), message("m2", "2026-01-02T10:00:00Z"), message("m3", "2026-01-02T12:00:00Z")];
    const rows = [row("m2", "2026-01-02T10:00:00+00:00"), row("p1", "2026-01-02T11:00:00Z"), row("m3", "2026-01-02T12:00:00Z")];
    expect(keys({ messages, rows })).toEqual([`day ${new Date("2026-01-01T10:00:00Z").toDateString()}`, "m1", `day ${new Date("2026-01-02T10:00:00Z").toDateString()}`, "m2", "p1", "m3"]);
  });

  it("shows a message that is being sent once, whether its event or its response comes first", () => {
    const rows = [row("m1", "2026-01-02T10:00:00Z", { sender: "human", recipient: "agent_a", text: "hello" })];
    expect(keys({ rows, unsent: [unsent("hello")] })).toEqual(["c1"]);
    const messages = [message("m1", "2026-01-02T10:00:00Z", { sender: "human", text: "hello", client_id: "c1" })];
    expect(keys({ messages, rows, unsent: [unsent("hello")] }).slice(1)).toEqual(["m1"]);
  });

  it("shows an answer only in its question's card", () => {
    const messages = [message("q", "2026-01-02T10:00:00Z", { kind: "question" }), message("a", "2026-01-02T10:01:00Z", { kind: "answer", sender: "human", in_reply_to: "q" })];
    expect(keys({ messages }).slice(1)).toEqual(["q"]);
  });

  it("puts the line below what the person has seen or written last", () => {
    const seen = { seen_at: "2026-01-02T11:00:00Z" };
    const at = "2026-01-02T10:00:00Z";
    const own = message("w", at, { sender: "human", recipient: "agent_a" });
    expect(firstUnread([message("a", at, seen), message("b", at), message("c", at)], "agent_a")).toBe("b");
    expect(firstUnread([message("a", at), message("b", at, seen), message("c", at)], "agent_a")).toBe("c");
    expect(firstUnread([message("a", at, seen), message("b", at), own], "agent_a")).toBeNull();
    expect(firstUnread([message("a", at), message("b", at)], "agent_a")).toBeNull();
  });

  it("marks the first unread message, and offers older ones", () => {
    const messages = [message("m1", "2026-01-02T10:00:00Z"), message("m2", "2026-01-02T10:01:00Z")];
    const items = keys({ messages, firstUnread: "m2", hasEarlier: true });
    expect([items[0], ...items.slice(2)]).toEqual(["earlier", "m1", "new", "m2"]);
  });

  it("groups consecutive messages of one sender", () => {
    const messages = [message("m1", "2026-01-02T10:00:00Z"), message("m2", "2026-01-02T10:01:00Z"), message("m3", "2026-01-02T10:30:00Z")];
    expect(buildItems(sources({ messages })).map((item) => item.kind === "row" && item.isContinued)).toEqual([false, false, true, false]);
  });
});

const notice = (key: string, text: string, more: Partial<SystemRow> = {}): SystemRow => ({ kind: "system", key, seq: 1, at: "2026-01-02T10:00:00Z", icon: "person", tone: "plain", text, detail: "", nodeId: null, ...more });
const tools = (key: string, names: string[], more: Partial<ToolsRow> = {}): ToolsRow => ({
  kind: "tools", key, seq: 1, at: "2026-01-02T10:00:00Z", nodeId: "n",
  calls: names.map((name) => ({ id: name, name, arguments: {}, reading: "", startedAt: "2026-01-02T10:00:00Z", endedAt: "2026-01-02T10:00:01Z", waitedMs: 0, failed: name === "bash", text: "", threadId: "t" })), ...more,
});
const line = (given: Partial<ItemSources>) =>
  buildItems(sources(given)).slice(1).map((item) => (item.kind === "folded" ? `${item.notice?.text ?? ""} (${item.more}; ${item.failed} failed; ${item.isOpen})` : item.key));

describe("what a conversation folds", () => {
  const at = "2026-01-02T10:00:00Z";
  const peer = row("p1", at, { recipient: "agent_b" });
  const rows: Row[] = [
    row("goal1", at, { sender: "human", recipient: "agent_a", isGoal: true }), notice("s1", "Alice joined"), notice("s2", "Bob joined"), tools("c1", ["read_file", "bash"]),
    peer, notice("s3", "{node} failed", { tone: "fail" }), tools("c2", ["bash"]), row("m1", at),
  ];

  it("is everything but words with the person and failures, in one line between them", () => {
    expect(line({ rows })).toEqual(["goal1", "Bob joined (3 steps · 1.0s; 1 failed; false)", "s3", " (1 step · 1.0s; 1 failed; false)", "m1"]);
  });

  it("says how many steps it holds and how long they took, without waits and the time between tasks", () => {
    const later = "2026-01-02T12:00:00Z";
    const [first] = tools("c1", ["read_file"]).calls;
    const second = tools("c2", [], { nodeId: "m", at: later, calls: [{ ...first!, startedAt: later, endedAt: "2026-01-02T12:10:00Z", waitedMs: 560_000 }] });
    expect(stepsText([tools("c1", ["read_file"]), second])).toBe("2 steps · 41s");
    expect(stepsText([notice("s1", "Alice joined")])).toBe("");
  });

  it("is only a run of notices in the view of the work", () => {
    expect(line({ rows, view: "work" })).toEqual(["goal1", "Bob joined (1 more notice; 0 failed; false)", "c1", "p1", "s3", "c2", "m1"]);
    expect(line({ rows: [notice("s9", "Alice joined")] })).toEqual(["s9"]);
  });

  it("opens on demand, or to show what a link names, and closes again", () => {
    const opened = ["goal1", "Bob joined (3 steps · 1.0s; 1 failed; true)", "s1", "s2", "c1", "p1", "s3", " (1 step · 1.0s; 1 failed; false)", "m1"];
    expect(line({ rows, opened: new Map([["folded s1", true]]) })).toEqual(opened);
    expect(line({ rows, at: "p1" })).toEqual(opened);
    expect(line({ rows, at: "p1", opened: new Map([["folded s1", false]]) })).toHaveLength(5);
  });

  it("leaves out the calls that a completed reply names itself", () => {
    const reply: NodeSummary = { title: "Reply", lane: "reply", agentId: "agent_a", status: "completed", stopReason: null, hasDoubts: false };
    expect(line({ rows: [tools("c3", ["read_file"]), row("m1", at)], nodes: { n: reply } })).toEqual(["m1"]);
  });
});
