import { describe, expect, it } from "vitest";
import type { TeamOverview } from "@/api/client";
import { keepOrder, sidebarRows, type SidebarView, sortTeams } from "@/shell/sidebarRows";

const team = (name: string, minute: number, more: Partial<TeamOverview> = {}): TeamOverview => ({
  id: name,
  name,
  status: "active",
  state: "running",
  trust: "standard",
  coordinator_id: `${name} c`,
  head: 1,
  created_at: `2026-01-01T08:${String(minute).padStart(2, "0")}:00Z`,
  active_at: `2026-01-01T10:${String(minute).padStart(2, "0")}:30Z`,
  ended_at: null,
  members: [{ id: `${name} c`, name: "coordinator", role: "coordinator", status: "idle", unread: 0, questions: 0 }],
  former_members: 0,
  open_questions: 0,
  unread: 0,
  usd: 0,
  quiet_hours: "",
  quiet_zone: "UTC",
  muted_until: null,
  ...more,
});
const view = (more: Partial<SidebarView> = {}): SidebarView => ({ current: undefined, pinned: [], filter: "", showsFinished: false, ...more });
const many = Array.from({ length: 9 }, (_, index) => team(`t${index}`, index));
const keys = (teams: TeamOverview[], more: Partial<SidebarView> = {}) => sidebarRows(teams, view(more)).map((row) => row.key);

describe("the order of teams", () => {
  it("is the newest activity first, pinned teams before all", () => {
    expect(sortTeams([team("old", 1), team("new", 9), team("pinned", 0)], ["pinned"]).map((one) => one.id)).toEqual(["pinned", "new", "old"]);
  });

  it("does not change between teams that are active in the same minute", () => {
    const [first, second] = [team("a", 1, { active_at: "2026-01-01T10:05:10Z" }), team("b", 2, { active_at: "2026-01-01T10:05:05Z" })];
    expect(sortTeams([first, second], []).map((one) => one.id)).toEqual(["b", "a"]);
  });

  it("stays as it is under the pointer; only new teams come in, at the top", () => {
    expect(keepOrder([team("c", 9), team("b", 5), team("a", 1)], ["a", "b"]).map((one) => one.id)).toEqual(["c", "a", "b"]);
  });
});

describe("the rows", () => {
  it("of a few teams are all of them, also the finished ones", () => {
    expect(keys([team("a", 1, { state: "done" }), team("b", 2)], { current: "b" })).toEqual(["a", "b"]);
  });

  it("fold finished teams away, unless they are open, pinned or have something to say", () => {
    const ended = [team("done", 1, { status: "completed", state: "done" }), team("open", 2, { status: "stopped", state: "failed" }), team("kept", 3, { status: "completed", state: "done" }), team("asks", 4, { status: "stopped", state: "stopped", open_questions: 1 })];
    const teams = [...ended, ...many];
    const rows = keys(teams, { current: "open", pinned: ["kept"] });
    expect(rows).toEqual(["open", "kept", "asks", ...many.map((one) => one.id), "finished"]);
    expect(keys(teams, { showsFinished: true }).slice(-4)).toEqual(["finished", "done", "open", "kept"]);
  });

  it("of a filter are the teams whose name, or the name or role of a member, holds it", () => {
    const teams = [...many, team("beans", 1, { status: "completed", state: "done" }), team("other", 2, { members: [{ id: "ada", name: "ada", role: "bean counter", status: "idle", unread: 0, questions: 0 }] })];
    expect(keys(teams, { filter: " Bean" })).toEqual(["beans", "other"]);
  });
});
