import { expect, test } from "vitest";
import { decidedText, type DigestEntry, entrySource, entryTitle, entryWords, groupEntries, isForAll } from "@/views/inbox/digestEntries";

const entry = (more: Partial<DigestEntry>): DigestEntry => ({ id: "x", kind: "pending", title: "note", text: "words", is_cut: false, source: "", agent_id: null, created_at: "2026-01-01T00:00:00Z", is_waited_for: false, always: null, ...more });

/** A digest with these entries, which the server groups by kind and source. */
function digest(entries: DigestEntry[]) {
  const keys = [...new Set(entries.map(({ kind, source }) => JSON.stringify([kind, source])))];
  const groups = keys.map((key) => {
    const [kind, source] = JSON.parse(key) as [DigestEntry["kind"], string];
    return { kind, source, ids: entries.filter((one) => one.kind === kind && one.source === source).map(({ id }) => id) };
  });
  return { entries, groups };
}

const grouped = (given: DigestEntry[]) => groupEntries(digest(given)).map(({ name, sources }) => [name, sources.map(({ source, entries }) => [source, entries.map(({ id }) => id)])]);

test("requests come first, and kinds without entries are left out", () => {
  const given = [entry({ id: "a", kind: "trigger" }), entry({ id: "b", kind: "ask" }), entry({ id: "c", kind: "trigger" })];

  expect(grouped(given)).toEqual([
    ["ask", [["", ["b"]]]],
    ["trigger", [["", ["a", "c"]]]],
  ]);
});

test("entries of a kind stand together by their source, as the server groups them", () => {
  const from = (id: string, source: string) => entry({ id, kind: "unverified", source });

  expect(grouped([from("a", "a web search"), from("b", "a page of x.example"), from("c", "a web search")])).toEqual([
    [
      "unverified",
      [
        ["a web search", ["a", "c"]],
        ["a page of x.example", ["b"]],
      ],
    ],
  ]);
});

test("uploaded files have a group of their own, and do not say that their words come from themselves", () => {
  const given = [entry({ id: "a", kind: "file", text: "user_uploads/offer.md", source: "the file offer.md" }), entry({ id: "b", kind: "file", text: "PLAN.md", source: "the file offer.md" })];

  expect(grouped(given)).toEqual([
    ["file", [["the file offer.md", ["b"]]]],
    ["upload", [["", ["a"]]]],
  ]);
  expect(given.map(entrySource)).toEqual(["", "the file offer.md"]);
});

test("all means knowledge, notes and triggers, never a request or a file", () => {
  const kinds = ["ask", "pending", "unverified", "file", "trigger", "use"] as const;

  expect(kinds.filter((kind) => isForAll(entry({ kind })))).toEqual(["pending", "unverified", "trigger"]);
});

test("a trigger shows its task and a request its arguments, with everything that there is in them", () => {
  const trigger = (text: string) => entryWords(entry({ kind: "trigger", text }));

  expect(trigger('{"task":"Look"} delayed {"delay_seconds":60}')).toBe("Look\ndelay_seconds: 60");
  expect(trigger('{"task":"Say \\"} x {\\"","to":["all"]} on_event {"event_pattern":"a} b {"}')).toBe('Say "} x {"\nto: ["all"]\nevent_pattern: a} b {');
  expect(trigger("{} x")).toBe("{} x");
  expect(entryWords(entry({ kind: "ask", text: 'bash {"command":"ls {}","timeout":120}' }))).toBe("command: ls {}\ntimeout: 120");
  expect(entryWords(entry({ text: '{"task": "Look"}' }))).toBe('{"task": "Look"}');
});

test("an entry says what it is, if its group does not", () => {
  const titles = [entry({ kind: "file", title: "file PLAN.md" }), entry({ kind: "ask", title: "bash: why" }), entry({}), entry({ kind: "trigger", title: "on_event trigger" })];

  expect(titles.map(entryTitle)).toEqual(["", "bash: why", "Note", "On event trigger"]);
});

test("a decision says what happens with what was decided on", () => {
  expect(decidedText({ confirm: ["x"] }, 1)).toBe("Confirmed.");
  expect(decidedText({ confirm: "all" }, 12)).toBe("12 entries confirmed.");
  expect(decidedText({ reject: ["x"] }, 1)).toBe("Rejected: it is not used.");
  expect(decidedText({ stop: ["x"] }, 1)).toBe("Stopped: it does not fire again.");
});
