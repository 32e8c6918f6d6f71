import { describe, expect, it } from "vitest";
import { isEditable } from "@/views/files/documents";

describe("a person", () => {
  it.each(["SOUL.md", "GOAL.md", "memory/knowledge/prices.md", "agents/ada/NOTEBOOK.md", "agents/ada/memory/x.md", "user_uploads/x.csv"])("may change %s", (path) => expect(isEditable(path)).toBe(true));
  it.each(["nodes/n/published/x.md", "memory/index.md", "memory/archive/x.md", "memory/unverified/x.md", "memory/x.txt", "other.md", "agents/ada/x.md", "memory", "user_uploads"])("does not change %s", (path) =>
    expect(isEditable(path)).toBe(false),
  );
});
