import { describe, expect, it } from "vitest";
import type { Message } from "@/api/client";
import type { MessageRow } from "@/live/log";
import type { UnsentMessage } from "@/live/store";
import { buildItems, type ItemSources } from "@/conversation/items";

const message = (id: string, at: string, more: Partial<Message> = {}): Message => ({
  id, team_id: "t", seq: 1, sender: "agent_a", sender_name: "a", recipient: "human", kind: "message", title: "", text: id, options: [], node_id: null,
  in_reply_to: null, client_id: null, attachments: [], created_at: at, seen_at: null, answered_at: null, decision: null, rating: null, call: null, sources: [], consulted: [], ...more,
});
const row = (id: string, at: string, more: Partial<MessageRow> = {}): MessageRow => ({
  kind: "message", key: id, seq: 1, at, id, sender: "agent_a", recipient: "human", messageKind: "message", text: id, nodeId: null, ...more,
});
const unsent = (text: string, clientId = "c1"): UnsentMessage => ({ clientId, agentId: "agent_a", text, at: "2026-01-02T10:00:00Z", mode: "send", state: "sending", reason: "", attachments: [] });
const sources = (more: Partial<ItemSources>): ItemSources => ({ messages: [], otherMessages: new Map(), rows: [], unsent: [], hasEarlier: false, firstUnread: null, showTools: true, ...more });
const keys = (given: Partial<ItemSources>) => buildItems(sources(given)).map((item) => item.key);

describe("the items of a conversation", () => {
  it("merges messages and rows by time, each once, below their days", () => {
    const messages = [message("m1", "2026-01-01T10:00:00Z"), message("m2", "2026-01-02T10:00:00Z"), message("m3", "2026-01-02T12:00:00Z")];
    const rows = [row("m2", "2026-01-02T10:00:00+00:00"), row("p1", "2026-01-02T11:00:00Z", { recipient: "agent_b" }), row("m3", "2026-01-02T12:00:00Z")];
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
