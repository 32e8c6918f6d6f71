import { describe, expect, it } from "vitest";
import { waitingReason, waitText } from "@/lib/waitingReason";

describe("the reason of a wait", () => {
  it.each([
    ["asked the human: Which?", "asked you: Which?"],
    ["asked the human (away until 2026-01-02 10:00 UTC): Which?", "asked you (away until 2026-01-02 10:00 UTC): Which?"],
    ["robin: Write the list (node_1m7nn85b89d5)", "robin: Write the list"],
    ["the result of 'The list' (node_1m7nn85b89d5)", "the result of 'The list'"],
    ["stage 'research'", "for the stage “research”"],
    ["stage 'research', done again", "for the stage “research”, done again"],
    ['stage "Ana\'s research"', "for the stage “Ana's research”"],
    ["stage 'Ana\\'s \"big\" research'", "for the stage “Ana's \"big\" research”"],
    ["the provider is down", "the provider is down"],
  ])("%s is shown as %s", (reason, shown) => {
    expect(waitingReason(reason)).toBe(shown);
  });

  it.each([
    ["", "waits"],
    ["asked the human: Which (node_1)?", "asked you: Which?"],
    ["asked the human to approve run_command", "asked you to approve run_command"],
    ["robin: Write the list (node_1m7nn85b89d5)", "waits for robin: Write the list"],
    ["A (node_1); B (node_2); and 3 more", "waits for A; B; and 3 more"],
    ["stage 'research'", "waits for the stage “research”"],
    ["a review of the result", "waits for a review of the result"],
    ["your question 'Which one?'", "waits for an answer to its question 'Which one?'"],
    ["needs a decision: A (node_1) is failed", "waits for a decision: A is failed"],
    ["waiting for the pages", "waits for the pages"],
    ["the provider is down", "waits: the provider is down"],
  ])("%s is told as %s", (reason, told) => {
    expect(waitText(reason)).toBe(told);
  });
});
