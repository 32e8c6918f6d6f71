import { renderMermaid } from "beautiful-mermaid";
import { describe, expect, it } from "vitest";
import { inLines } from "@/reading/Diagram";

describe("a diagram", () => {
  it.each(["graph TD; A-->B; B-->C", "flowchart LR;A-->B", "graph LR A-->B", "graph TD;\nA[one; two]-->B;\nB-->C;", "graph TD; A[Start] --> B{Ok?}; B -->|yes| C(End);", "sequenceDiagram; A->>B: hi; B-->>A: ho", "graph TD\n  A-->B\n\n  B-->C"])("in %j is drawn", async (source) => {
    expect(await renderMermaid(inLines(source), {})).toContain("<svg");
  });

  it("keeps what is in labels and leaves other diagrams of several lines", () => {
    expect(inLines('graph TD; A["one; two"]-->|a;b|B{x; y}; B-->C(z; z)')).toBe('graph TD\nA["one; two"]-->|a;b|B{x; y}\nB-->C(z; z)');
    expect(inLines("sequenceDiagram\n  A->>B: one; two")).toBe("sequenceDiagram\n  A->>B: one; two");
  });
});
