import { expect, it } from "vitest";
import type { InboxItem } from "@/api/client";
import { nextQuestion } from "@/shell/Shortcuts";
import { isLate, unansweredItems } from "@/shell/unanswered";

const item = (id: string, needs_answer: boolean, node_status: InboxItem["node_status"]) => ({ needs_answer, node_status, message: { id: `msg_${id}`, team_id: "team_1", sender: `agent_${id}` } }) as unknown as InboxItem;
const items = [item("a", true, "completed"), item("b", true, "waiting"), item("c", false, "completed"), item("d", true, null), item("e", true, "failed"), item("f", true, "running")];

it("what nobody waits for any more comes last, in lists and for the key that opens the next question", () => {
  expect(unansweredItems(items).map((one) => [one.message.id, isLate(one)])).toEqual([["msg_b", false], ["msg_d", false], ["msg_f", false], ["msg_a", true], ["msg_e", true]]);
  expect([nextQuestion("/", unansweredItems(items)), nextQuestion("/inbox/msg_f", unansweredItems(items))]).toEqual(["/inbox/msg_b", "/inbox/msg_a"]);
});
