import { describe, expect, it } from "vitest";
import { waitingReason } from "@/lib/waitingReason";

describe("the reason of a wait", () => {
  it.each([
    ["asked the human: Which?", "asked you: Which?"],
    ["asked the human (away until 2026-01-02 10:00 UTC): Which?", "asked you (away until 2026-01-02 10:00 UTC): Which?"],
    ["robin: Write the list (node_1m7nn85b89d5)", "robin: Write the list"],
    ["stage 'research'", "for the stage “research”"],
    ["stage 'research', done again", "for the stage “research”, done again"],
    ['stage "Ana\'s research"', "for the stage “Ana's research”"],
    ["stage 'Ana\\'s \"big\" research'", "for the stage “Ana's \"big\" research”"],
    ["the provider is down", "the provider is down"],
  ])("%s is shown as %s", (reason, shown) => {
    expect(waitingReason(reason)).toBe(shown);
  });
});
