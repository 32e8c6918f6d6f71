/**
 * Log: what happened in one team, as far as it is loaded, and the rows its members' threads show.
 *
 * `append` is pure, and indifferent to being told twice: events at or below `last` change nothing, and an
 * event after a gap is not taken but reported. Only what a batch touches is copied.
 */
import type { components } from "@/api/types";
import { capital } from "@/lib/format";

export type Event = components["schemas"]["Event"];
export type Frame = components["schemas"]["Frame"];
export type Lane = "work" | "reply" | "reflection";
export type MessageKind = components["schemas"]["MessageView"]["kind"];

export interface Call {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  startedAt: string;
  endedAt: string | null;
  failed: boolean;
  /** The beginning of what it answered. */
  text: string;
  /** Its thread, where the whole stands. */
  threadId: string;
}

interface Placed {
  key: string;
  seq: number;
  at: string;
}

export interface MessageRow extends Placed {
  kind: "message";
  id: string;
  sender: string;
  recipient: string;
  messageKind: MessageKind;
  text: string;
  nodeId: string | null;
}
/** Consecutive calls of one task. */
export interface ToolsRow extends Placed {
  kind: "tools";
  nodeId: string;
  calls: Call[];
}
/** What an agent wrote beside its calls. */
export interface SaidRow extends Placed {
  kind: "said";
  nodeId: string;
  text: string;
}
export type Tone = "plain" | "work" | "done" | "wait" | "fail";
/** Something that happened around the agent. `words` may hold {node}, for the title of `nodeId`. */
export interface SystemRow extends Placed {
  kind: "system";
  icon: "assigned" | "started" | "done" | "failed" | "cancelled" | "waiting" | "stage" | "person" | "clock" | "note" | "team" | "model";
  tone: Tone;
  words: string;
  detail: string;
  nodeId: string | null;
}
export type Row = MessageRow | ToolsRow | SaidRow | SystemRow;

export interface KnownNode {
  title: string;
  lane: Lane;
  agentId: string | null;
  /** Its open calls run no more: they wait for somebody, or for a time. */
  isWaiting: boolean;
}

export interface Log {
  /** The number of the oldest event that is loaded; 0: none is. */
  first: number;
  /** The number of the newest; the next one must follow it. */
  last: number;
  events: Event[];
  people: Record<string, string>;
  coordinator: string | null;
  nodes: Record<string, KnownNode>;
  /** How many calls of a task have no answer yet. */
  open: Record<string, number>;
  /** What the person answered, by question. */
  answers: Record<string, Answered>;
  threads: Record<string, Row[]>;
}

export interface Answered {
  text: string;
  decision: string | null;
  at: string;
}

export const emptyLog = (last = 0): Log => ({
  first: 0,
  last,
  events: [],
  people: {},
  coordinator: null,
  nodes: {},
  open: {},
  answers: {},
  threads: {},
});

export interface Appended {
  log: Log;
  /** Whether events are missing between what is loaded and what was told. */
  gap: boolean;
}

export function append(log: Log, events: readonly Event[]): Appended {
  const fresh: Event[] = [];
  let last = log.last;
  let gap = false;
  for (const event of events) {
    if (event.seq <= last) continue;
    if (event.seq !== last + 1) {
      gap = true;
      break;
    }
    fresh.push(event);
    last = event.seq;
  }
  if (fresh.length === 0) return { log, gap };
  const next: Draftable = {
    ...log,
    first: log.first || fresh[0]!.seq,
    last,
    events: log.events.concat(fresh),
    threads: { ...log.threads },
    copied: new Set(),
  };
  for (const event of fresh) place(next, event);
  const { copied: _, ...done } = next;
  return { log: done, gap };
}

/** Older events before those that are loaded. What they tell of nodes and people counts for later ones too. */
export function prepend(log: Log, older: readonly Event[], coordinator = log.coordinator): Log {
  const before = older.filter((event) => log.first === 0 || event.seq < log.first);
  if (before.length === 0) return log;
  const start: Log = { ...emptyLog(before[0]!.seq - 1), coordinator };
  return append(start, [...before, ...log.events]).log;
}

interface Draftable extends Log {
  copied: Set<string>;
}

function thread(log: Draftable, agent: string): Row[] {
  if (!log.copied.has(agent)) {
    log.threads[agent] = log.threads[agent]?.slice() ?? [];
    log.copied.add(agent);
  }
  return log.threads[agent]!;
}

/** A part of the log to write into; whoever looks at one that was not touched need not look again. */
function part<Name extends "people" | "nodes" | "open" | "answers">(log: Draftable, name: Name): Log[Name] {
  if (!log.copied.has(name)) {
    log[name] = { ...log[name] };
    log.copied.add(name);
  }
  return log[name];
}

function place(log: Draftable, event: Event): void {
  switch (event.type) {
    case "agent.hired": {
      const { agent_id, name, role } = event.data;
      part(log, "people")[agent_id] = name;
      if (role === "coordinator") log.coordinator ??= agent_id;
      else system(log, log.coordinator, event, "person", `${capital(name)} joined${role && role !== name && role !== "worker" ? ` as ${role}` : ""}`);
      return;
    }
    case "agent.left":
      return system(log, log.coordinator, event, "person", `${capital(event.data.name)} left`);
    case "agent.promoted":
      return system(log, log.coordinator, event, "person", `${capital(event.data.name)} stays for good`);
    case "node.created": {
      const { node_id, title, lane } = event.data;
      return note(log, node_id, { title, lane: lane as Lane });
    }
    case "node.assigned":
    case "node.started": {
      const { node_id, agent_id } = event.data;
      const isNew = log.nodes[node_id]?.agentId !== agent_id;
      note(log, node_id, { agentId: agent_id, isWaiting: false });
      if (event.type === "node.assigned" && isNew) work(log, node_id, event, "assigned", "Took on {node}");
      return;
    }
    case "thread.opened":
      return note(log, event.data.node_id, { agentId: event.data.agent_id });
    case "turn.added":
      return turn(log, event);
    case "tool.result":
      return result(log, event);
    case "message.sent":
    case "question.asked":
      return message(log, event);
    case "question.answered": {
      const { message_id, text, decision } = event.data;
      part(log, "answers")[message_id] = { text, decision: decision ?? null, at: event.at };
      return;
    }
    default:
      return happened(log, event);
  }
}

function happened(log: Draftable, event: Event): void {
  switch (event.type) {
    case "node.completed":
      close(log, event.data.node_id, event.at);
      return work(log, event.data.node_id, event, "done", "Finished {node}", "done");
    case "node.failed":
      close(log, event.data.node_id, event.at);
      return work(log, event.data.node_id, event, "failed", "{node} failed", "fail", event.data.result ?? "");
    case "node.cancelled":
      close(log, event.data.node_id, event.at);
      return work(log, event.data.node_id, event, "cancelled", "{node} was cancelled", "plain", event.data.result ?? "");
    case "node.waiting":
      note(log, event.data.node_id, { isWaiting: true });
      // For an answer or an approval: the question itself stands there.
      if (event.data.on.some((what) => /^(answer|approval):/.test(what))) return;
      // Somebody who was spoken to and waits on says nothing new.
      if (lastWait(log, event.data.node_id) === (event.data.reason ?? "")) return;
      return work(log, event.data.node_id, event, "waiting", "{node} waits", "plain", event.data.reason ?? "");
    case "node.stalled":
      return work(log, event.data.node_id, event, "waiting", "{node} has shown no progress for a while", "wait");
    case "node.checkpoint":
      return work(log, event.data.node_id, event, "note", "Saved the state of {node}", "plain", event.data.summary);
    case "stage.started":
      return system(log, log.coordinator, event, "stage", `Stage ${event.data.name} began with ${event.data.nodes.length} tasks`);
    case "stage.ended":
      return system(log, log.coordinator, event, "stage", `Stage ${event.data.name} ended: ${event.data.status}`);
    case "stage.reconvened":
      return system(log, log.coordinator, event, "stage", `Reviewed stage ${event.data.name}`, "plain", event.data.assessment);
    case "thread.compacted":
      return work(log, event.data.node_id, event, "note", "Continued from a summary of the work so far");
    case "model.failed":
      return work(log, event.data.node_id, event, "model", "The model did not answer", "fail", event.data.reason);
    case "call.lost":
      return work(log, event.data.node_id, event, "model", "A model call was lost in a restart and is repeated", "wait");
    case "trigger.fired":
      return system(log, event.data.agent_id, event, "clock", "Started by a trigger");
    case "memory.written":
      return system(log, event.data.agent_id, event, "note", event.data.path ? `Wrote ${event.data.path}` : "Remembered something about you");
    case "team.paused":
      return system(log, log.coordinator, event, "team", "The team was paused");
    case "team.resumed":
      return system(log, log.coordinator, event, "team", "The team was resumed");
    case "team.stopped":
      return system(log, log.coordinator, event, "team", "The team was stopped");
    case "team.completed":
      return system(log, log.coordinator, event, "team", "The team completed its goal", "done");
    default:
      return;
  }
}

/** What is new of a task, beside what is known of it. */
function note(log: Draftable, node: string, news: Partial<KnownNode>): void {
  const known = log.nodes[node] ?? { title: "", lane: "work", agentId: null, isWaiting: false };
  const isNew = !log.nodes[node] || Object.entries(news).some(([name, value]) => known[name as keyof KnownNode] !== value);
  if (isNew) part(log, "nodes")[node] = { ...known, ...news };
}

function system(
  log: Draftable,
  agent: string | null,
  event: Event,
  icon: SystemRow["icon"],
  words: string,
  tone: Tone = "plain",
  detail = "",
  nodeId: string | null = null,
): void {
  if (agent === null) return;
  thread(log, agent).push({ kind: "system", key: `s${event.seq}`, seq: event.seq, at: event.at, icon, tone, words, detail, nodeId });
}

/** Something about a task, in its worker's thread. Replies and reflections speak for themselves. */
function work(
  log: Draftable,
  node: string,
  event: Event,
  icon: SystemRow["icon"],
  words: string,
  tone: Tone = "plain",
  detail = "",
): void {
  const known = log.nodes[node];
  if (!known?.agentId || (known.lane !== "work" && tone !== "fail")) return;
  system(log, known.agentId, event, icon, words, tone, detail, node);
}

/** Why a task waited when it last did. */
function lastWait(log: Draftable, node: string): string | null {
  const rows = log.threads[log.nodes[node]?.agentId ?? ""] ?? [];
  const last = rows.findLast((row) => row.kind === "system" && row.nodeId === node);
  return last?.kind === "system" && last.icon === "waiting" ? last.detail : null;
}

/** No call outlives the turn it was made in: what was cut short leaves no event of its own. */
function close(log: Draftable, node: string, at: string): void {
  const agent = log.nodes[node]?.agentId;
  if (!agent || !log.open[node]) return;
  part(log, "open")[node] = 0;
  const rows = thread(log, agent);
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i]!;
    if (row.kind !== "tools" || row.nodeId !== node) continue;
    if (row.calls.every((call) => call.endedAt !== null)) return;
    rows[i] = { ...row, calls: row.calls.map((call) => (call.endedAt === null ? { ...call, endedAt: at } : call)) };
  }
}

/** Calls that show by what they did: messages, cards, and what a reply decides for itself. */
const SPOKEN = new Set(["ask_human", "send_message", "no_work_needed", "start_work"]);

function turn(log: Draftable, event: Extract<Event, { type: "turn.added" }>): void {
  const { agent_id, node_id, thread_id, text, calls } = event.data;
  note(log, node_id, { agentId: agent_id });
  const lane = log.nodes[node_id]!.lane;
  if (lane === "reflection") return;
  close(log, node_id, event.at);
  const rows = thread(log, agent_id);
  // A reply's words come as a message; a last word beside `finish` or `publish` as the result.
  const isLastWord = calls.some((call) => call.name === "finish" || call.name === "publish");
  if (text.trim() && lane === "work" && !isLastWord) {
    rows.push({ kind: "said", key: `w${event.seq}`, seq: event.seq, at: event.at, nodeId: node_id, text });
  }
  const shown = calls.filter((call) => !SPOKEN.has(call.name));
  if (shown.length === 0) return;
  part(log, "open")[node_id] = shown.length;
  const made: Call[] = shown.map((call) => ({
    id: call.id,
    name: call.name,
    arguments: call.arguments,
    startedAt: event.at,
    endedAt: null,
    failed: false,
    text: "",
    threadId: thread_id,
  }));
  const before = rows.at(-1);
  if (before?.kind === "tools" && before.nodeId === node_id) {
    rows[rows.length - 1] = { ...before, calls: [...before.calls, ...made] };
  } else {
    rows.push({ kind: "tools", key: `c${event.seq}`, seq: event.seq, at: event.at, nodeId: node_id, calls: made });
  }
}

function result(log: Draftable, event: Extract<Event, { type: "tool.result" }>): void {
  const { node_id, call_id, failed, text } = event.data;
  const agent = log.nodes[node_id]?.agentId;
  if (!agent) return;
  const rows = thread(log, agent);
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i]!;
    if (row.kind !== "tools" || row.nodeId !== node_id) continue;
    const at = row.calls.findLastIndex((call) => call.id === call_id && call.endedAt === null);
    if (at < 0) continue;
    const calls = row.calls.slice();
    calls[at] = { ...calls[at]!, endedAt: event.at, failed, text };
    part(log, "open")[node_id] = (log.open[node_id] ?? 1) - 1;
    rows[i] = { ...row, calls };
    return;
  }
}

function message(log: Draftable, event: Extract<Event, { type: "message.sent" | "question.asked" }>): void {
  const { message_id, sender, recipient, kind, text, node_id } = event.data;
  const row: MessageRow = {
    kind: "message",
    key: message_id,
    seq: event.seq,
    at: event.at,
    id: message_id,
    sender,
    recipient,
    messageKind: kind,
    text,
    nodeId: node_id,
  };
  const readers = new Set([sender, recipient].filter((who) => who !== "human" && who !== "system"));
  // A worker's question also stands before the coordinator, so that nobody has to look for it.
  if (event.type === "question.asked" && log.coordinator) readers.add(log.coordinator);
  for (const who of readers) thread(log, who).push(row);
}
