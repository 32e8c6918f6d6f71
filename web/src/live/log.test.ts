import { describe, expect, it } from "vitest";
import { append, callMs, emptyLog, type Event, type TeamLog, prepend, type ToolsRow } from "@/live/log";

const ADA = "agent_ada";
const BOB = "agent_bob";
let seq = 0;
const event = (type: Event["type"], data: object): Event =>
  ({ team_id: "team_1", seq: ++seq, type, at: `2026-01-01T10:00:${String(seq % 60).padStart(2, "0")}Z`, data }) as Event;

function story(): Event[] {
  seq = 0;
  return [
    event("team.created", { name: "Team", goal: "Goal", mode: "finite" }),
    event("agent.hired", { agent_id: ADA, name: "coordinator", role: "coordinator", model: "m", kind: "llm", created_for: null }),
    event("agent.hired", { agent_id: BOB, name: "bob", role: "worker", model: "m", kind: "llm", created_for: null }),
    event("node.created", { node_id: "n1", title: "Measure", parent_id: null, creator_id: ADA, lane: "work", needs: [] }),
    event("node.assigned", { node_id: "n1", agent_id: BOB, agent: "bob" }),
    event("node.started", { node_id: "n1", agent_id: BOB, attempt: 1 }),
    event("turn.added", { node_id: "n1", thread_id: "t1", agent_id: BOB, seq: 1, text: "I look.", calls: [{ id: "c1", name: "bash", arguments: { command: "ls" } }], tokens: 1, usd: 0 }),
    event("tool.result", { node_id: "n1", call_id: "c1", tool: "bash", failed: false, text: "a b" }),
    event("turn.added", { node_id: "n1", thread_id: "t1", agent_id: BOB, seq: 3, text: "", calls: [{ id: "c1", name: "read_file", arguments: { path: "a" } }], tokens: 1, usd: 0 }),
    event("tool.result", { node_id: "n1", call_id: "c1", tool: "read_file", failed: true, text: "no such file" }),
    event("question.asked", { message_id: "q1", kind: "question", sender: BOB, recipient: "human", text: "Which?", node_id: "n1" }),
    event("node.waiting", { node_id: "n1", on: ["answer:q1"], reason: "asked the human: Which?" }),
    event("question.answered", { message_id: "q1", node_id: "n1", text: "This one", decision: null }),
    event("message.sent", { message_id: "m1", kind: "message", sender: BOB, recipient: ADA, text: "Half done.", node_id: "n1" }),
    event("node.completed", { node_id: "n1", reason: "finished", result: "Done", doubts: null }),
  ];
}

const all = (events: Event[]): TeamLog => append(emptyLog(), events).log;
const shape = (log: TeamLog, agent: string) => log.rowsByAgent[agent]!.map((row) => (row.kind === "system" ? `system ${row.text}` : row.kind === "message" ? `message ${row.id}` : row.kind));

describe("a log", () => {
  it("becomes the rows of each member's conversation", () => {
    const log = all(story());
    expect(shape(log, BOB)).toEqual(["system Was assigned {node}", "text", "tools", "message q1", "message m1", "system Finished {node}"]);
    expect(shape(log, ADA)).toEqual(["message goal1", "system Bob joined", "message q1", "message m1"]);
    expect(log.answers.q1).toMatchObject({ text: "This one", decision: null });
  });

  it("counts no wait as time of a call: for a person, or while no server runs", () => {
    const begun = story().slice(0, 6);
    let number = 6;
    const at = (second: number, type: Event["type"], data: object): Event =>
      ({ team_id: "team_1", seq: ++number, type, at: new Date(Date.UTC(2026, 0, 1, 11) + 1000 * second).toISOString(), data: { node_id: "n1", ...data } }) as unknown as Event;
    const turn = (second: number, ...ids: string[]) => at(second, "turn.added", { thread_id: "t1", agent_id: BOB, seq: number, text: "", calls: ids.map((id) => ({ id, name: "bash", arguments: {} })), tokens: 1, usd: 0 });
    const result = (second: number, call_id: string) => at(second, "tool.result", { call_id, tool: "bash", failed: false, text: "" });
    const log = all([
      ...begun,
      turn(0, "asks", "next"),
      at(1, "node.waiting", { on: ["approval:q"], reason: "asks" }),
      at(36, "node.assigned", { agent_id: BOB }),
      at(37, "node.started", { agent_id: BOB, attempt: 1 }),
      result(39, "asks"),
      result(42, "next"),
      // The server dies in the middle of this call, and comes back a minute later.
      turn(43, "cut off"),
      at(103, "node.started", { agent_id: BOB, attempt: 2 }),
      result(105, "cut off"),
      // The answer to a question arrives while the task is parked.
      turn(106, "question"),
      at(107, "node.waiting", { on: ["answer:q"], reason: "asks" }),
      result(200, "question"),
    ]);
    const calls = log.rowsByAgent[BOB]!.flatMap((row) => (row.kind === "tools" ? row.calls : []));
    expect(calls.map((call) => [call.id, callMs(call), call.waitedMs])).toEqual([
      ["asks", 3000, 36_000],
      ["next", 3000, 0],
      ["cut off", 2000, 60_000],
      ["question", 1000, 93_000],
    ]);
  });

  it("says that a call was interrupted only if it was", () => {
    const begun = story().slice(0, 6);
    seq = 6;
    const lost = (cause: string | null) => event("call.lost", { node_id: "n1", thread_id: "t1", cause });
    const log = all([...begun, lost("failed"), event("model.failed", { node_id: "n1", reason: "401: the key is wrong." }), lost("ended"), lost(null), lost("interrupted")]);
    const rows = log.rowsByAgent[BOB]!.slice(1).map((row) => (row.kind === "system" ? row.text : row.kind));
    expect(rows).toEqual(["A model call for {node} failed", "A model call for {node} got no reply; its estimated cost is counted", "A model call for {node} was interrupted, for example by a restart, and is made again"]);
  });

  it("joins calls with their results, also when call ids repeat", () => {
    const tools = all(story()).rowsByAgent[BOB]!.find((row): row is ToolsRow => row.kind === "tools")!;
    expect(tools.calls.map((call) => [call.name, call.failed, call.text])).toEqual([
      ["bash", false, "a b"],
      ["read_file", true, "no such file"],
    ]);
  });

  it("says how a task ended and how a call was read", () => {
    const begun = story().slice(0, 6);
    seq = 6;
    const log = all([
      ...begun,
      event("turn.added", { node_id: "n1", thread_id: "t1", agent_id: BOB, seq: 1, text: "", calls: [{ id: "c1", name: "bash", arguments: {}, reading: "the name was Bash" }, { id: "c2", name: "bash", arguments: {} }], tokens: 1, usd: 0 }),
      event("node.partial", { node_id: "n1", reason: "turns_spent", result: "Half.", doubts: null }),
    ]);
    const { status, stopReason, hasDoubts } = log.nodes.n1!;
    expect({ status, stopReason, hasDoubts }).toEqual({ status: "partial", stopReason: "turns_spent", hasDoubts: false });
    expect(shape(log, BOB).at(-1)).toBe("system {node} ended with a partial result");
    expect(log.rowsByAgent[BOB]!.flatMap((row) => (row.kind === "tools" ? row.calls.map((call) => call.reading) : []))).toEqual(["the name was Bash", ""]);
    const again = append(log, [event("node.assigned", { node_id: "n1", agent_id: BOB, agent: "bob" }), event("node.completed", { node_id: "n1", reason: "finished", result: "Done.", doubts: [{ kind: "file", words: "`a.md` is missing", node_id: null, title: "" }] })]).log;
    // The points stand below the result.
    expect(again.rowsByAgent[BOB]!.at(-1)).toMatchObject({ text: "Finished {node}, with doubts", tone: "wait", detail: "" });
    expect(again.nodes.n1).toMatchObject({ status: "completed", hasDoubts: true });
  });

  it("says which hosts commands reached or were refused, and what was changed in a person's folder", () => {
    const log = all([
      ...story(),
      event("network.reached", { node_id: "n1", call_id: "c1", host: "pypi.org", use: "packages", grant_id: null }),
      event("network.refused", { node_id: "n1", call_id: "c1", sentences: ["No to a.example.", "Allow it."] }),
      event("folder.changed", { node_id: "n1", folder: "work", paths: ["a.txt"], count: 1 }),
      event("folder.changed", { node_id: null, folder: "work", paths: ["a.txt", "b.txt"], count: 2 }),
    ]);
    expect(shape(log, BOB).slice(-3)).toEqual(["system A command for {node} reached pypi.org (packages)", "system A command for {node} was refused the network", "system Changed 1 file of folders/work for {node}"]);
    expect(log.rowsByAgent[BOB]!.at(-2)).toMatchObject({ detail: "No to a.example. Allow it.", tone: "wait" });
    expect(shape(log, ADA).at(-1)).toBe("system You put 2 files of folders/work back");
  });

  it("knows whether a call runs or waits", () => {
    const told = story();
    const waits = (until: number) => all(told.slice(0, until)).nodes.n1!.status === "waiting";
    const at = told.findIndex((one) => one.type === "node.waiting");
    expect([waits(at), waits(at + 1)]).toEqual([false, true]);
    const back = event("node.assigned", { node_id: "n1", agent_id: BOB, agent: "bob" });
    expect(all([...told, back]).nodes.n1!.status).toBe("assigned");
  });

  it("keeps the identity of parts that a batch does not change", () => {
    const before = all(story());
    const after = append(before, [event("turn.added", { node_id: "n1", thread_id: "t1", agent_id: BOB, seq: 9, text: "On.", calls: [], tokens: 1, usd: 0 })]).log;
    expect(after.rowsByAgent[BOB]).not.toBe(before.rowsByAgent[BOB]);
    for (const part of ["nodes", "memberNames", "answers"] as const) expect(after[part]).toBe(before[part]);
    expect(after.rowsByAgent[ADA]).toBe(before.rowsByAgent[ADA]);
  });

  it("ends a call without a result at its agent's next turn", () => {
    const wait = (reason: string) => event("node.waiting", { node_id: "n1", on: ["stage:s1"], reason });
    const calls = (id: string) => [{ id, name: "start_stage", arguments: { name: "a" } }];
    const turn = (id: string, at: number) => event("turn.added", { node_id: "n1", thread_id: "t1", agent_id: BOB, seq: at, text: "", calls: calls(id), tokens: 1, usd: 0 });
    const begun = story().slice(0, 6);
    seq = 6;
    const log = all([...begun, turn("c1", 1), wait("stage a"), turn("c2", 2), wait("stage a")]);
    const rows = log.rowsByAgent[BOB]!;
    expect(shape(log, BOB)).toEqual(["system Was assigned {node}", "tools", "system {node} waits", "tools"]);
    expect(rows.filter((row) => row.kind === "tools").map((row) => row.calls.map((call) => call.endedAt !== null))).toEqual([[true], [false]]);
    const ended = append(log, [event("node.completed", { node_id: "n1", reason: "finished", result: "", doubts: null })]).log;
    expect(ended.rowsByAgent[BOB]!.filter((row) => row.kind === "tools").every((row) => row.calls.every((call) => call.endedAt !== null))).toBe(true);
  });

  it("says of a wait that is over that it was", () => {
    const wait = (reason: string) => event("node.waiting", { node_id: "n1", on: ["node:n2"], reason });
    const started = () => event("node.started", { node_id: "n1", agent_id: BOB, agent: "bob", attempt: 1 });
    const begun = story().slice(0, 6);
    seq = 6;
    const events = [...begun, wait("robin: The list (node_2)"), started(), wait("robin: The list (node_2)")];
    const waits = (log: ReturnType<typeof all>) => log.rowsByAgent[BOB]!.flatMap((row) => (row.kind === "system" && row.icon === "waiting" ? [`${row.text} ${row.detail}`] : []));
    expect([7, 8, 9].map((count) => waits(all(events.slice(0, count))))).toEqual([["{node} waits for robin: The list"], ["{node} waited for robin: The list"], ["{node} waits for robin: The list"]]);
    const other = append(all(events), [started(), wait("the provider is down")]).log;
    expect(waits(other)).toEqual(["{node} waited for robin: The list", "{node} waits the provider is down"]);
    const ended = append(other, [event("node.cancelled", { node_id: "n1", reason: "cancelled", result: "" })]).log;
    expect(waits(ended)).toEqual(["{node} waited for robin: The list", "{node} waited the provider is down"]);
  });

  it("says once who cancelled a task, and who started it again", () => {
    const begun = story().slice(0, 6);
    seq = 6;
    const log = append(all(begun), [event("node.cancelled", { node_id: "n1", reason: "cancelled", result: "human stopped it.", by: "human" }), event("node.assigned", { node_id: "n1", agent_id: BOB, by: "human" })]).log;
    const rows = log.rowsByAgent[BOB]!.flatMap((row) => (row.kind === "system" ? [[row.text, row.detail]] : []));
    expect(rows.slice(-2)).toEqual([["{node} was cancelled by you", ""], ["You started {node} again", ""]]);
  });

  it("does not depend on how events are split into batches", () => {
    const events = story();
    const whole = all(events);
    for (let cut = 0; cut <= events.length; cut++) {
      const first = append(emptyLog(), events.slice(0, cut)).log;
      expect(append(first, events.slice(cut)).log).toEqual(whole);
    }
  });

  it("applies no event twice", () => {
    const log = all(story());
    const again = append(log, story());
    expect(again.log).toBe(log);
    expect(again.hasGap).toBe(false);
  });

  it("stops at a gap and reports it", () => {
    const events = story();
    const { log, hasGap } = append(all(events.slice(0, 5)), events.slice(7));
    expect([log.last, hasGap]).toEqual([5, true]);
  });

  it("does not mutate the previous log", () => {
    const events = story();
    const before = append(emptyLog(), events.slice(0, 7)).log;
    const kept = structuredClone(before);
    append(before, events.slice(7));
    expect(before).toEqual(kept);
  });

  it("puts older pages before the loaded events", () => {
    const events = story();
    const late = append({ ...emptyLog(8), coordinator: ADA }, events.slice(8)).log;
    expect(late.first).toBe(9);
    expect(prepend(late, events.slice(0, 8))).toEqual(all(events));
  });

  it("hides the reflection lane", () => {
    const log = all([
      ...story(),
      event("node.created", { node_id: "n2", title: "Look back", parent_id: null, creator_id: "system", lane: "reflection", needs: [] }),
      event("node.assigned", { node_id: "n2", agent_id: BOB, agent: "bob" }),
      event("turn.added", { node_id: "n2", thread_id: "t2", agent_id: BOB, seq: 1, text: "Hm.", calls: [], tokens: 1, usd: 0 }),
      event("node.completed", { node_id: "n2", reason: "finished", result: "", doubts: null }),
    ]);
    expect(log.rowsByAgent[BOB]).toEqual(all(story()).rowsByAgent[BOB]);
  });

  it("applies ten thousand events in batches", () => {
    seq = 0;
    const events = [
      event("agent.hired", { agent_id: ADA, name: "coordinator", role: "coordinator", model: "m", kind: "llm", created_for: null }),
      ...Array.from({ length: 10_000 }, (_, i) => event("message.sent", { message_id: `m${i}`, kind: "message", sender: ADA, recipient: "human", text: "x", node_id: null })),
    ];
    let log = emptyLog();
    for (let at = 0; at < events.length; at += 50) log = append(log, events.slice(at, at + 50)).log;
    expect(log.rowsByAgent[ADA]).toHaveLength(10_000);
  });

  it("opens a question again whose answer was taken back", () => {
    const asked = [
      event("question.answered", { message_id: "q1", node_id: "n1", text: "Blue", decision: null }),
      event("reply.act_undone", { message_id: "m1", sender: ADA, recipient: "human", place: 0, kind: "answered", about: "q1", text: "Answered (undone)" }),
    ];
    const [first] = asked;
    expect(append(emptyLog(first!.seq - 1), [first!]).log.answers.q1?.text).toBe("Blue");
    expect(append(emptyLog(first!.seq - 1), asked).log.answers).toEqual({});
  });
});
