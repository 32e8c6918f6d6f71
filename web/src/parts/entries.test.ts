import { describe, expect, it } from "vitest";
import type { InboxItem } from "@/api/client";
import { bodyOf, collectedRows, labelOf, previewOf, splitNote, titleOf } from "@/parts/entries";

const STOPPED = "It stopped at a limit before it was done: its turns are used up.\n\nWhat there is so far:\n# Beans\n\n31 of my_beans.";
function entry(more: Partial<Omit<InboxItem, "message">> & { message?: Partial<InboxItem["message"]> }): InboxItem {
  const { message, ...rest } = more;
  return {
    state: "unread",
    needs_answer: false,
    has_doubts: (message?.doubts?.length ?? 0) > 0, team_name: "Beans", box: "inbox",
    deliveries: [],
    node_status: null,
    stop_reason: null,
    always: null, waiting_work: [], reply_to: null, snoozed_until: null, archived_at: null,
    ...rest,
    message: { kind: "failure", title: "", text: STOPPED, call: null, doubts: [], ...message } as InboxItem["message"],
  };
}

it("have one row for more than three open questions of a team, and a row each for all else", () => {
  const asked = (team_id: string, many: number) => Array.from({ length: many }, () => entry({ needs_answer: true, message: { kind: "question", team_id } as InboxItem["message"] }));
  const [many, few] = [asked("team_1", 4), asked("team_2", 3)];
  const request = entry({ needs_answer: true, message: { kind: "approval", team_id: "team_1" } as InboxItem["message"] });
  expect(collectedRows([few[0]!, many[0]!, request, ...many.slice(1), ...few.slice(1)])).toEqual([few[0], many, request, few[1], few[2]]);
});

describe("inbox entries", () => {
  it("say at which limit a task stopped, never the raw name", () => {
    const reasons = ["turns_spent", "tokens_spent", "money_spent", "calls_spent", "time_spent", "looping"] as const;
    expect(reasons.map((stop_reason) => labelOf(entry({ node_status: "partial", stop_reason })).text)).toEqual([
      "Partial result: stopped at a limit (turns)",
      "Partial result: stopped at a limit (tokens)",
      "Partial result: stopped at a limit (money)",
      "Partial result: stopped at a limit (model calls)",
      "Partial result: stopped at a limit (time)",
      "Partial result: stopped in a loop",
    ]);
  });

  it("say what became of a task that stopped early", () => {
    const states = ["failed", "running", "completed", null] as const;
    expect(states.map((node_status) => labelOf(entry({ node_status })))).toEqual([
      { text: "Failure", tone: "fail" },
      { text: "Stopped early, goes on now", tone: "work" },
      { text: "Stopped early, done since", tone: "plain" },
      { text: "Failure", tone: "fail" },
    ]);
  });

  it("put why a task stopped before what there is, and take the title from what there is", () => {
    const item = entry({ node_status: "partial", stop_reason: "turns_spent" });
    expect(splitNote(item).note).toBe("It stopped at a limit before it was done: its turns are used up.");
    expect([titleOf(item), bodyOf(item)]).toEqual(["Beans", "31 of my_beans."]);
    expect(previewOf(item)).toBe("It stopped at a limit before it was done: its turns are used up. 31 of my_beans.");
  });

  it("name doubts in the label, and begin with the result", () => {
    const item = entry({ message: { kind: "result", text: "All beans: 62.", doubts: [{ kind: "file", words: "`a.md` is missing", node_id: null, title: "" }] } });
    expect(labelOf(item)).toEqual({ text: "Done, with doubts", tone: "wait" });
    expect([splitNote(item), titleOf(item), previewOf(item)]).toEqual([{ note: "", rest: "All beans: 62." }, "All beans: 62.", ""]);
  });

  it("have titles without the marks of Markdown", () => {
    const titled = (title: string, text: string) => titleOf(entry({ message: { kind: "report", title, text } }));
    expect(titled("# **Beans** of [June](https://x.invalid)", "x")).toBe("Beans of June");
    expect(titled("", "## The `my_file.py` is _done_\n\nMore.")).toBe("The my_file.py is done");
  });

  it("have no preview that repeats the title", () => {
    const previewed = (title: string, text: string) => previewOf(entry({ message: { kind: "result", title, text } }));
    expect(previewed("The **list** is written", "The list is written.")).toBe("");
    expect(previewed("", "# The list\n\nHas **two** shirts.")).toBe("Has two shirts.");
    expect(previewed("The list", "Two shirts.")).toBe("Two shirts.");
    const long = `${"beans ".repeat(20)}and rice`;
    expect(previewed("", long)).toBe(long);
  });

  it("show what a person answers with all but its marks of emphasis", () => {
    const item = entry({ needs_answer: true, message: { kind: "question", title: "", text: "Keep *a_b*\u202E?" } });
    const longer = entry({ needs_answer: true, message: { kind: "question", title: "", text: "Keep *a*?\nOr *b*\u202E?" } });
    expect(previewOf(longer)).toBe("Or b⟨U+202E⟩?");
    const hiding = entry({ needs_answer: true, message: { kind: "question", title: "", text: "Go on?\n**Now** <!-- and delete --> [x](https://y 'z')" } });
    expect(previewOf(hiding)).toBe("Now <!-- and delete --> [x](https://y 'z')");
    const call = entry({ needs_answer: true, message: { kind: "approval", title: "", text: "May I?", call: { id: "c", name: "bash", arguments: { command: "curl \u0430pple.com" } } } });
    expect(previewOf(call)).toBe("curl ⟨U+0430⟩pple.com");
    expect([labelOf(item).text, titleOf(item), previewOf(item)]).toEqual(["Question", "Keep a_b⟨U+202E⟩?", ""]);
  });
});
