import { describe, expect, it } from "vitest";
import { foundHref, foundIds, previewText, shownFound } from "@/shell/found";
import { emergencyRows, highlighted, matchingGroups, type PaletteEntry, splitAtWords } from "@/shell/paletteRows";
import type { Found } from "@/api/client";

const entry = (label: string, keywords: string[] = []) => ({ id: label, label, keywords });
const labels = (typed: string, ...groups: [string, PaletteEntry[]][]) =>
  matchingGroups(groups.map(([name, entries]) => ({ name, entries })), typed).map(({ name, entries }) => [name, ...entries.map(({ label }) => label)]);

describe("the entries that match", () => {
  const members = [entry("Carol", ["writer"]), entry("Scanner", ["worker"])];
  const actions = [entry("Operations", ["health"]), ...emergencyRows(false)];
  it("come best first, and the group with the best one comes first", () => {
    expect(labels("sca", ["Team", members], ["Actions", actions])).toEqual([["Team", "Scanner"]]);
    expect(labels("w", ["Team", members], ["Actions", actions])).toEqual([["Team", "Carol", "Scanner"], ["Actions", "Stop all work"]]);
    for (const word of ["stop", "pause", "emergency"]) expect(labels(word, ["Team", members], ["Actions", actions])).toEqual([["Actions", "Stop all work"]]);
  });
  it("keep their order while nothing is typed", () => {
    expect(labels(" ", ["Team", members], ["Empty", []])).toEqual([["Team", "Carol", "Scanner"]]);
  });
});

it("while all work is stopped, the words for stopping it resume nothing", () => {
  const found = (typed: string) => labels(typed, ["Actions", emergencyRows(true)]);
  for (const word of ["stop", "stop all", "stop all work", "pause", "emergency stop"]) expect(found(word)).toEqual([["Actions", "All work is stopped already"]]);
  expect(found("emergency")).toEqual([["Actions", "All work is stopped already", "Resume all work"]]);
  for (const word of ["resume", "continue"]) expect(found(word)).toEqual([["Actions", "Resume all work"]]);
});

it("the first row is highlighted, until the person has chosen one that is still there", () => {
  const [one, two, three] = ["one", "two", "three"].map((label) => entry(label));
  expect(highlighted([one!, two!], null)).toBe(one);
  expect(highlighted([three!, one!, two!], null)).toBe(three);
  expect(highlighted([three!, one!, two!], "two")).toBe(two);
  expect(highlighted([three!, one!], "two")).toBe(three);
  expect(highlighted([], "two")).toBeUndefined();
});

it("a preview is split at the searched words, in any case", () => {
  expect(splitAtWords("The Kettle boils; kettles do.", ["kettle"])).toEqual(["The ", "Kettle", " boils; ", "kettle", "s do."]);
  expect(splitAtWords("a+b is (c)", ["(c)", "a+b"])).toEqual(["", "a+b", " is ", "(c)", ""]);
  expect(splitAtWords("nothing here", ["tea"])).toEqual(["nothing here"]);
});

const found = (more: Partial<Found>): Found => ({ kind: "message", team_id: "t", team_name: "T", ref: "msg_1", title: "", preview: "The kettle boils", agent_id: "a", node_id: null, thread_id: null, seq: null, sources: [], at: "2026-01-01T00:00:00Z", ...more });

describe("what the server has found", () => {
  it("opens the thing itself", () => {
    expect(foundHref(found({}))).toBe("/t/t/a/a?at=msg_1");
    expect(foundHref(found({ agent_id: null }))).toBe("/inbox/msg_1");
    expect(foundHref(found({ kind: "file", ref: "user_uploads/tea.md" }))).toBe("/t/t/files/user_uploads/tea.md");
    expect(foundHref(found({ kind: "step", ref: "thread_1", seq: 7 }))).toBe("/t/t/threads/thread_1?step=7");
    expect(foundHref(found({ kind: "page", ref: "https://a.example/b?c=d&e" }))).toBe("/t/t/memory?page=https%3A%2F%2Fa.example%2Fb%3Fc%3Dd%26e");
  });
  it("is shown once, and hits of an earlier text only while they hold the new words", () => {
    const tea = found({ ref: "msg_2", preview: "Tea" });
    expect(shownFound([found({}), found({}), tea], ["kettle"], true)).toEqual([found({})]);
    expect(shownFound([found({}), found({}), tea], ["kettle"], false)).toEqual([found({}), tea]);
  });
  it("is previewed without the marks of Markdown; a call keeps every character", () => {
    expect(["message", "step"].map((kind) => previewText(found({ kind: kind as Found["kind"], preview: "…of prices** The **kettle** is in `a_b.md`, # not" })))).toEqual(["…of prices The kettle is in a_b.md, # not", "…of prices** The **kettle** is in `a_b.md`, # not"]);
  });

  it("has the same id when its preview moves with the words, and one of its own", () => {
    const moved = found({ preview: "boils over" });
    expect(foundIds([moved])).toEqual(foundIds([found({})]));
    expect(new Set(foundIds([found({}), moved, found({ ref: "msg_2" })])).size).toBe(3);
  });
});
