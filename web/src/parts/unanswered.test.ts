import { expect, it } from "vitest";
import type { InboxItem } from "@/api/client";
import { nextQuestion } from "@/shell/Shortcuts";
import { isLate, questionAfter, unansweredItems } from "@/parts/unanswered";

const item = (id: string, needs_answer: boolean, node_status: InboxItem["node_status"]) => ({ needs_answer, node_status, message: { id: `msg_${id}`, team_id: "team_1", sender: `agent_${id}` } }) as unknown as InboxItem;
const items = [item("a", true, "completed"), item("b", true, "waiting"), item("c", false, "completed"), item("d", true, null), item("e", true, "failed"), item("f", true, "running")];

it("what nobody waits for any more comes last, in lists and for the key that opens the next question", () => {
  expect(unansweredItems(items).map((one) => [one.message.id, isLate(one)])).toEqual([["msg_b", false], ["msg_d", false], ["msg_f", false], ["msg_a", true], ["msg_e", true]]);
  expect([nextQuestion("/", unansweredItems(items)), nextQuestion("/inbox/msg_f", unansweredItems(items))]).toEqual(["/inbox/msg_b", "/inbox/msg_a"]);
});

it("on an agent's page its own question comes first, then each of the others once", () => {
  const open = unansweredItems(["a", "b", "c"].map((id) => item(id, true, "waiting")));
  const after = (href: string) => questionAfter(href, open)?.message.id;
  expect(["/t/team_1/board", "/t/team_1/a/agent_b", "/t/team_1/a/agent_b?at=msg_b", "/t/team_1/a/agent_c?at=msg_c", "/t/team_1/a/agent_a?at=msg_a"].map(after)).toEqual(["msg_a", "msg_b", "msg_c", "msg_a", "msg_b"]);
  expect([nextQuestion("/t/team_1/a/agent_b", open), nextQuestion("/t/team_1/a/agent_b?at=msg_b", open)]).toEqual(["/inbox/msg_b", "/inbox/msg_c"]);
  expect(questionAfter("/", [])).toBeUndefined();
});

it("an agent's own question comes after those that somebody waits for if nobody waits for it any more", () => {
  const open = unansweredItems([item("a", true, "completed"), item("b", true, "waiting"), item("c", true, "failed")]);
  expect(questionAfter("/t/team_1/a/agent_c", open)?.message.id).toBe("msg_b");
  expect(questionAfter("/t/team_1/a/agent_c", open.filter(isLate))?.message.id).toBe("msg_c");
});
