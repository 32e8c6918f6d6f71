import { describe, expect, it } from "vitest";
import { requestedBy } from "@/lib/participants";

describe("the requester of a task", () => {
  it.each([
    ["human", "human", "system", "You"],
    ["human", "human", "user", "You"],
    ["human", "human", "trigger", "You, by a trigger"],
    ["agent_1", "ada", "delegation", "Ada"],
    ["agent_1", "ada", "self", "Ada, by itself"],
    ["system", "system", "system", "agiraph"],
  ] as const)("%s with the name %s and the source %s is %s", (creator_id, creator, source, said) => {
    expect(requestedBy({ creator_id, creator, source })).toBe(said);
  });
});
