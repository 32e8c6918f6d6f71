import { expect, test } from "vitest";
import { pageNames, pageOf } from "@/shell/PageTitle";

const known = { team: "csv", member: "ada", item: "Which library?" };

test("every page has its name, and that of its team", () => {
  const names = Object.fromEntries(["/", "/inbox", "/inbox/msg_1", "/inbox/digest", "/settings", "/models", "/archive", "/operations", "/t/team_1", "/t/team_1/a/agent_1", "/t/team_1/board", "/t/team_1/files/notes/a%20b.md", "/t/team_1/threads/t_1", "/nowhere"].map((path) => [path, pageNames(path, known).join(" · ")]));
  expect(names).toEqual({
    "/": "",
    "/inbox": "Inbox",
    "/inbox/msg_1": "Which library? · Inbox",
    "/inbox/digest": "Needs review · Inbox",
    "/settings": "Settings",
    "/models": "Models",
    "/archive": "Archived teams",
    "/operations": "Operations",
    "/t/team_1": "csv",
    "/t/team_1/a/agent_1": "Ada · csv",
    "/t/team_1/board": "Board · csv",
    "/t/team_1/files/notes/a%20b.md": "a b.md · Files · csv",
    "/t/team_1/threads/t_1": "Threads · csv",
    "/nowhere": "",
  });
});

test("what is not loaded yet is left out", () => {
  expect(pageNames("/t/team_1/a/agent_1", {})).toEqual([]);
  expect(pageNames("/t/team_1/board", {})).toEqual(["Board"]);
  expect(pageNames("/inbox/msg_1", {})).toEqual(["Inbox"]);
});

test("an item of a list is no page of its own", () => {
  expect(pageOf("/inbox/msg_1")).toBe(pageOf("/inbox/msg_2"));
  expect(pageOf("/t/a/files/x/y.md")).toBe(pageOf("/t/a/files"));
  expect(pageOf("/t/a/a/ada")).not.toBe(pageOf("/t/a/a/bob"));
  expect(pageOf("/t/a/board")).not.toBe(pageOf("/t/b/board"));
});
