import { describe, expect, it } from "vitest";
import { ancestors, type Entry, isInternal, moveByKey, treeRows } from "@/views/files/tree";

const file = (path: string, kind = "file"): Entry => ({ path, kind, size: 1, modified: "2026-01-01T00:00:00Z" });
const listings = new Map([
  ["", [file("b.md"), file("a10.md"), file("a2.md"), file("nodes", "folder"), file("memory", "folder")]],
  ["nodes", [file("nodes/n1", "folder"), file("nodes/readme")]],
]);

describe("tree", () => {
  it("sorts folders first and numbers by value", () => {
    expect(treeRows(listings, new Set()).map((row) => row.name)).toEqual(["memory", "nodes", "a2.md", "a10.md", "b.md"]);
  });
  it("shows the entries of open folders that are loaded", () => {
    const rows = treeRows(listings, new Set(["nodes", "nodes/n1"]));
    expect(rows.map((row) => [row.name, row.depth])).toEqual([["memory", 0], ["nodes", 0], ["n1", 1], ["readme", 1], ["a2.md", 0], ["a10.md", 0], ["b.md", 0]]);
    expect(rows[2]).toMatchObject({ position: 1, setSize: 2, isOpen: true });
  });
  it("returns the folders above a path", () => {
    expect(ancestors("nodes/n1/published/x.md")).toEqual(["nodes", "nodes/n1", "nodes/n1/published"]);
    expect(ancestors("user_uploads/attached/msg_1/0/x.md")).toEqual(["user_uploads"]);
    expect(ancestors("GOAL.md")).toEqual([]);
  });
  it("knows the runtime's own files from those of people and programs", () => {
    const paths = ["nodes/n1/_refs.json", "nodes/n1/scratch/_home", "nodes/n1/report.md", "nodes/n1/published/__init__.py", "folders/site/_config.yml", "user_uploads/_draft.md"];
    expect(paths.filter((path) => isInternal(file(path)))).toEqual(["nodes/n1/_refs.json", "nodes/n1/scratch/_home"]);
  });
  it("moves by the keys of the ARIA tree pattern", () => {
    const shut = treeRows(listings, new Set());
    const open = treeRows(listings, new Set(["nodes"]));
    expect(moveByKey(shut, 0, "ArrowDown")).toEqual({ to: 1 });
    expect(moveByKey(shut, 0, "ArrowUp")).toBeNull();
    expect(moveByKey(shut, 1, "ArrowRight")).toEqual({ toggle: "nodes" });
    expect(moveByKey(open, 1, "ArrowRight")).toEqual({ to: 2 });
    expect(moveByKey(open, 3, "ArrowLeft")).toEqual({ to: 1 });
    expect(moveByKey(open, 1, "ArrowLeft")).toEqual({ toggle: "nodes" });
    expect(moveByKey(shut, 2, "a")).toEqual({ to: 3 });
    expect(moveByKey(shut, 3, "a")).toEqual({ to: 2 });
    expect(moveByKey(shut, 4, "End")).toEqual({ to: 4 });
    expect(moveByKey([], 0, "End")).toBeNull();
  });
});
