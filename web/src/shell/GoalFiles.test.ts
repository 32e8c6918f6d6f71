// @vitest-environment jsdom
import { expect, it, vi } from "vitest";
import { useComposer } from "@/conversation/composerState";
import { live } from "@/live";
import { sendGoalFiles } from "@/shell/GoalFiles";

it("the files of a goal go to the coordinator of the new team, and no second time", () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  useComposer.setState({ files: { "new-team": [{ name: "beans.csv", media_type: "text/csv", data: "eA==", bytes: 1 }] } });
  sendGoalFiles("agent_1");
  sendGoalFiles("agent_1");
  expect(live.store.getState().unsent.map(({ agentId, text, mode, attachments }) => ({ agentId, text, mode, attachments }))).toEqual([
    { agentId: "agent_1", text: "This file belongs to the goal.", mode: "nudge", attachments: [{ name: "beans.csv", media_type: "text/csv", data: "eA==" }] },
  ]);
  expect(useComposer.getState().files["new-team"]).toEqual([]);
});
