import { expect, it } from "vitest";
import { ownPage, screenHref } from "@/lib/screens";

it("an address of a page of agiraph itself is found, and no other address", () => {
  expect(ownPage("/t/team_1/board?node=node_7")).toBe("/t/team_1/board?node=node_7");
  expect(ownPage("/t/team_1/a/agent_1?at=msg_1")).toBe("/t/team_1/a/agent_1?at=msg_1");
  for (const other of ["https://evil.example/t/team_1/board", "//evil.example/t/team_1/board", "/signin?token=x", "/t/team_1/../../signin", "/api/teams", "javascript:alert(1)"]) expect(ownPage(other)).toBeNull();
});

it("the address of a screen keeps the folders of a path and escapes the rest", () => {
  expect(screenHref("team_1", "files", "notes/a (1)?.md", "?view=history")).toBe("/t/team_1/files/notes/a%20(1)%3F.md?view=history");
  expect(screenHref("team_1", "board")).toBe("/t/team_1/board");
});
