import { describe, expect, it } from "vitest";
import type { Agent } from "@/api/client";
import { attachedPath } from "@/views/composer/attachments";
import { fileReference, isForAgents, mentionedIn, nodeReference, quotation, typedAt, withLinks } from "@/views/composer/references";

const agents = ["coordinator", "bob", "bob-2", "ada"].map((name) => ({ id: `agent_${name}`, name })) as Agent[];

describe("references", () => {
  it("become links with the id of the task or the path of the file, for people and agents alike", () => {
    const references = [nodeReference("team_1", { id: "node_7", title: "Compare [A] and B" }), nodeReference("team_1", { id: "node_8", title: "Compare" }), fileReference("team_1", "nodes/node_7/published/a (1).md")];
    expect(withLinks("See #Compare [A] and B, #Compare, and #nodes/node_7/published/a (1).md; not #Other", references)).toBe(
      "See [#Compare \\[A\\] and B](/t/team_1/board?node=node_7), [#Compare](/t/team_1/board?node=node_8), and " +
        "[nodes/node_7/published/a (1).md](/t/team_1/files/nodes/node_7/published/a%20%281%29.md); not #Other",
    );
    expect(withLinks("as it is", [])).toBe("as it is");
  });

  it("name only files that agents can open: those of messages are in no folder", () => {
    const paths = [attachedPath("msg_7", 0, "beans.csv"), "user_uploads/beans.csv", "user_uploads/attached.md", "nodes/node_7/published/beans.csv"];
    expect(paths.filter(isForAgents)).toEqual(paths.slice(1));
  });

  it("are completed at the beginning of a word", () => {
    expect(typedAt("Ask @bo", 7)).toEqual({ sign: "@", words: "bo", start: 4 });
    expect(typedAt("(#Com", 5)).toEqual({ sign: "#", words: "Com", start: 1 });
    expect([typedAt("me@home", 7), typedAt("a#1", 3), typedAt("@bob and", 8), typedAt("See #12", 7), typedAt("@bob", 2)]).toEqual([null, null, null, null, { sign: "@", words: "b", start: 0 }]);
  });
});

describe("mentions", () => {
  it("are names of the team as whole words, in the person's own words", () => {
    const names = (text: string) => mentionedIn(text, agents).map((agent) => agent.name);
    expect(names("@Bob and (@ada), look")).toEqual(["bob", "ada"]);
    expect(names("@bob-2: look")).toEqual(["bob-2"]);
    expect(names("me@bob.example, @bobby, @nobody\n> @ada said\n`@ada`\n```\n@ada\n```")).toEqual([]);
  });
});

it("a quotation keeps every line and leads to the message", () => {
  expect(quotation("One\n\n> Two", "Bob, 10:02", "/t/team_1/a/agent_1?at=msg_1")).toBe("> One\n>\n> > Two\n>\n> — [Bob, 10:02](/t/team_1/a/agent_1?at=msg_1)\n\n");
});
