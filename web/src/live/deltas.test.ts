import { expect, it } from "vitest";
import type { InboxRow, Schemas } from "@/api/client";
import type { InboxList } from "@/api/queries";
import { changedItems, withRows } from "@/live/deltas";
import type { Event } from "@/live/log";

const ALL: InboxList = { box: "inbox", team: "", kind: null, open: false };
const row = (id: string, more: Partial<InboxRow> = {}) =>
  ({ box: "inbox", state: "read", needs_answer: false, waiting_work: [], archived_at: null, snoozed_until: null, ...more, message: { id, team_id: "team_1", kind: "report", ...more.message } }) as InboxRow;
const asked = (id: string) => row(id, { needs_answer: true, message: { kind: "question" } as InboxRow["message"] });
const page = (cursor: string | null, ...items: InboxRow[]) => ({ items, cursor, unread: 0, open: 0, newest: "" }) satisfies Schemas["InboxRows"];
const placed = (pages: Schemas["InboxRows"][], rows: InboxRow[], list = ALL, ids = rows.map((one) => one.message.id)) => withRows(pages, new Set(ids), rows, list).map(({ items }) => items.map(({ message }) => message.id).join(" "));

it("puts a row in its place: questions oldest first, then what is back from a snooze, then the newest", () => {
  const list = [page(null, asked("b"), asked("d"), row("h"), row("f"))];
  expect(placed(list, [asked("c")])).toEqual(["b c d h f"]);
  expect(placed(list, [row("i"), row("g"), row("a")])).toEqual(["b d i h g f a"]);
  expect(placed(list, [row("e", { state: "unread", snoozed_until: "2001-01-01T00:00:00Z" })])).toEqual(["b d e h f"]);
  expect(placed(list, [row("b")])).toEqual(["d h f b"]);
});

it("leaves out what belongs to a page that is not loaded, and what is of another list", () => {
  const list = [page("rest:h", asked("b"), row("h")), page("rest:f", row("f"))];
  expect(placed(list, [row("g"), row("a")])).toEqual(["b h", "g f"]);
  expect(placed(list, [row("g", { box: "archived" })])).toEqual(["b h", "f"]);
  expect(placed(list, [row("h", { box: "archived" })])).toEqual(["b", "f"]);
  expect(placed(list, [row("g")], { ...ALL, team: "team_2" })).toEqual(["b h", "f"]);
  expect(placed(list, [row("g"), asked("c")], { ...ALL, open: true })).toEqual(["b c h", "f"]);
  expect(placed(list, [], ALL, ["b"])).toEqual(["h", "f"]);
});

const shown = { waiting_work: [{ team_id: "team_2", node_id: "node_2" }], message: { id: "msg_1", node_id: "node_1" } } as InboxRow;
const known = new Map([["msg_1", shown]]);
const changed = (type: string, data: object) => changedItems({ type, team_id: "team_1", data } as unknown as Event, known);

it("an item is fetched when a task that it is about ends or goes back into the queue: whether somebody waits for an answer has changed", () => {
  const types = ["node.started", "node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned", "node.output"];
  const fetching = (node_id: string) => types.filter((type) => changed(type, { node_id }).ids.includes("msg_1"));
  expect([fetching("node_1"), fetching("node_2")]).toEqual([1, 2].map(() => ["node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned"]));
  expect(fetching("node_3")).toEqual([]);
});

it("an item is fetched when it arrives, is filed or is open again; of what is read elsewhere only what is shown", () => {
  expect(changed("message.sent", { message_id: "msg_2", kind: "report", recipient: "human" })).toEqual({ ids: ["msg_2"], others: false });
  expect(changed("message.sent", { message_id: "msg_2", kind: "result", recipient: "agent_1" })).toEqual({ ids: [], others: false });
  expect(changed("message.sent", { message_id: "msg_2", kind: "message", recipient: "human" })).toEqual({ ids: [], others: false });
  expect(changed("message.filed", { message_ids: ["msg_1", "msg_2"] })).toEqual({ ids: ["msg_1", "msg_2"], others: false });
  expect(changed("message.seen", { message_ids: ["msg_1", "msg_2"] })).toEqual({ ids: ["msg_1"], others: true });
  expect(changed("reply.act_undone", { message_id: "msg_3", kind: "answered", about: "msg_2" })).toEqual({ ids: ["msg_2"], others: false });
  expect(changed("node.waiting", { node_id: "node_9", on: ["answer:msg_4", "node:node_8"] })).toEqual({ ids: ["msg_4"], others: false });
});
