// @vitest-environment jsdom
import { describe, expect, it, vi } from "vitest";
import { linkPaths, mayBePath, watchPath } from "@/reading/paths";
import { live } from "@/live";
import type { Frame } from "@/live/log";

describe("code", () => {
  it.each(["report.md", "data/table.csv", "nodes/node_1/published/report.md", "./x.py:12", "scratch/", "Umsätze 2026.csv", "memory/index.md"])("%s may name a file", (text) =>
    expect(mayBePath(text)).toBe(true),
  );
  it.each(["x = 1", "../token", "/etc/passwd", "https://evil.invalid/x.md", "javascript:x.md", "a\u202egpj.md", "<b>.md", "numpy.array", "a".repeat(300) + ".md", "//evil.invalid/x.md", "data:x/y.md"])("%s is no name of a file", (text) =>
    expect(mayBePath(text)).toBe(false),
  );
});

describe("prose", () => {
  const links = (text: string): string[] => {
    const tree = { type: "root", children: [{ type: "paragraph", children: [{ type: "text", value: text }] }] };
    linkPaths(tree);
    const parts: { type: string; url?: string; value?: string; children?: { value?: string }[] }[] = tree.children[0]!.children;
    expect(parts.map((part) => part.value ?? part.children?.[0]?.value).join("")).toBe(text);
    return parts.filter(({ type }) => type === "link").map(({ url }) => url!);
  };
  it("has links where it names files", () => {
    expect(links("See report.md and data/table.csv, or src/main.py:12.")).toEqual(["report.md", "data/table.csv", "src/main.py:12"]);
  });
  it("has no links where it names something else", () => {
    expect(links("It takes 2.5 h, e.g. me@example.html or Node.js! www.evil.invalid/x.md and /etc/x.md")).toEqual(["Node.js"]);
  });
});

describe("a name of a file that does not exist yet", () => {
  const arrives = (seq: number, type: string) => {
    live.receive({ op: "event", event: { team_id: "t", seq, type, at: "2026-01-01T10:00:00Z", data: { node_id: "n" } } } as unknown as Frame);
    live.flush();
  };
  it("is asked for again when work ends, and not at each step", async () => {
    const made: { text: string; path: string }[] = [];
    const server = vi.fn((_address: string) => Promise.resolve(new Response(JSON.stringify(made))));
    vi.stubGlobal("fetch", server);
    const asks = () => server.mock.calls.filter(([address]) => address.startsWith("/api/teams/t/paths")).length;
    const found: string[] = [];
    const stop = watchPath("t", "report.md", (path) => found.push(path));
    await vi.waitFor(() => expect(asks()).toBe(1));
    made.push({ text: "report.md", path: "nodes/n/published/report.md" });
    arrives(1, "turn.added");
    arrives(2, "node.completed");
    await vi.waitFor(() => expect(found).toEqual(["nodes/n/published/report.md"]));
    arrives(3, "node.completed");
    expect(asks()).toBe(2);
    stop();
  });
});
