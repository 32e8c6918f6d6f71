/**
 * Log: the loaded events of one team, and the rows that its members' conversations show.
 *
 * `append` is a pure, idempotent reducer: events at or below `last` change nothing, and events after a gap are
 * not applied but reported. It copies only the parts that a batch changes, so that components that select the
 * other parts are not rendered again.
 */
import { waitDetail } from "@/lib/waitingReason";
import type { components } from "@/api/types";
import { type Ending, stoppedTeamText, stoppedText, type Tone } from "@/lib/endings";
import { capitalize } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";

export type Event = components["schemas"]["Event"];
export type Frame = components["schemas"]["Frame"];
export type Lane = "work" | "reply" | "reflection";
export type MessageKind = components["schemas"]["MessageView"]["kind"];

export interface ToolCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  /** How the call was read, if the model wrote it in another form; empty if nothing was repaired. */
  reading: string;
  /** When its agent could begin with it: after the reply, or after the result of the call before it. */
  startedAt: string;
  endedAt: string | null;
  /** How long nobody worked on it between its start and its end: it waited, or no server ran. */
  waitedMs: number;
  failed: boolean;
  /** The beginning of its result. */
  text: string;
  /** The thread that holds the complete result. */
  threadId: string;
}

/** Return how long a call was worked on; null while it has no result. */
export const callMs = (call: ToolCall): number | null => (call.endedAt === null ? null : Math.max(0, Date.parse(call.endedAt) - Date.parse(call.startedAt) - call.waitedMs));

interface RowBase {
  key: string;
  seq: number;
  at: string;
}

export interface MessageRow extends RowBase {
  kind: "message";
  id: string;
  sender: string;
  recipient: string;
  messageKind: MessageKind;
  text: string;
  nodeId: string | null;
  /** Whether it is the goal that the person gave the team: the event of the team's start, not a stored message. */
  isGoal?: boolean;
  /** The id of the earlier message that it takes the place of. */
  edits?: string;
}
/** Consecutive tool calls of one task. */
export interface ToolsRow extends RowBase {
  kind: "tools";
  nodeId: string;
  calls: ToolCall[];
}
/** Text that an agent wrote beside its tool calls. */
export interface TextRow extends RowBase {
  kind: "text";
  nodeId: string;
  text: string;
}
/** A line about the agent's work or its team. `text` may contain {node}, which stands for the title of `nodeId`. */
export interface SystemRow extends RowBase {
  kind: "system";
  icon: "assigned" | "started" | "done" | "partial" | "failed" | "cancelled" | "waiting" | "stage" | "person" | "clock" | "note" | "team" | "model" | "network";
  tone: Tone;
  text: string;
  detail: string;
  nodeId: string | null;
}
export type Row = MessageRow | ToolsRow | TextRow | SystemRow;

/** `status` is null until an event says it. */
export interface NodeSummary extends Ending {
  title: string;
  lane: Lane;
  agentId: string | null;
}

export interface TeamLog {
  /** The number of the oldest loaded event; 0 if none is loaded. */
  first: number;
  /** The number of the newest loaded event. The next one must be `last + 1`. */
  last: number;
  events: Event[];
  memberNames: Record<string, string>;
  coordinator: string | null;
  /** The goal of the team until the event that names its coordinator. */
  firstGoal: MessageRow | null;
  nodes: Record<string, NodeSummary>;
  /** The number of calls without a result, by task. */
  openCalls: Record<string, number>;
  /** The last event of each task, and whether it parked the task. */
  signs: Record<string, { at: number; isPaused: boolean }>;
  /** The person's answers, by message id of the question. */
  answers: Record<string, GivenAnswer>;
  rowsByAgent: Record<string, Row[]>;
}

export interface GivenAnswer {
  text: string;
  decision: string | null;
  /** Nobody answered: agiraph closed the question, and the text says why. */
  isClosed: boolean;
  at: string;
}

export const emptyLog = (last = 0): TeamLog => ({
  first: 0,
  last,
  events: [],
  memberNames: {},
  coordinator: null,
  firstGoal: null,
  nodes: {},
  openCalls: {},
  signs: {},
  answers: {},
  rowsByAgent: {},
});

interface AppendResult {
  log: TeamLog;
  /** Whether events are missing between `last` and the given ones. */
  hasGap: boolean;
}

export function append(log: TeamLog, events: readonly Event[]): AppendResult {
  const newEvents: Event[] = [];
  let last = log.last;
  let hasGap = false;
  for (const event of events) {
    if (event.seq <= last) continue;
    if (event.seq !== last + 1) {
      hasGap = true;
      break;
    }
    newEvents.push(event);
    last = event.seq;
  }
  if (newEvents.length === 0) return { log, hasGap };
  const next: MutableLog = {
    ...log,
    first: log.first || newEvents[0]!.seq,
    last,
    events: log.events.concat(newEvents),
    rowsByAgent: { ...log.rowsByAgent },
    copied: new Set(),
  };
  for (const event of newEvents) applyEvent(next, event);
  const { copied: _, ...finished } = next;
  return { log: finished, hasGap };
}

/** Put older events before the loaded ones. All rows are built again, because older events hold titles and names that later rows need. */
export function prepend(log: TeamLog, older: readonly Event[], coordinator = log.coordinator): TeamLog {
  const before = older.filter((event) => log.first === 0 || event.seq < log.first);
  if (before.length === 0) return log;
  const start: TeamLog = { ...emptyLog(before[0]!.seq - 1), coordinator };
  return append(start, [...before, ...log.events]).log;
}

/** A log while a batch is applied. `copied` names the parts that are copies and may be changed. */
interface MutableLog extends TeamLog {
  copied: Set<string>;
}

/** Return an agent's rows for writing; copy them first if this batch has not. */
function writableRows(log: MutableLog, agent: string): Row[] {
  if (!log.copied.has(agent)) {
    log.rowsByAgent[agent] = log.rowsByAgent[agent]?.slice() ?? [];
    log.copied.add(agent);
  }
  return log.rowsByAgent[agent]!;
}

/** Return a part of the log for writing; copy it first if this batch has not. */
function writable<Name extends "memberNames" | "nodes" | "openCalls" | "signs" | "answers">(log: MutableLog, name: Name): TeamLog[Name] {
  if (!log.copied.has(name)) {
    log[name] = { ...log[name] };
    log.copied.add(name);
  }
  return log[name];
}

function applyEvent(log: MutableLog, event: Event): void {
  noteSign(log, event);
  switch (event.type) {
    case "team.created":
      return addGoal(log, event, event.data.goal);
    case "agent.hired": {
      const { agent_id, name, role } = event.data;
      writable(log, "memberNames")[agent_id] = name;
      if (role === "coordinator") {
        log.coordinator ??= agent_id;
        if (log.firstGoal) writableRows(log, agent_id).unshift({ ...log.firstGoal, recipient: agent_id });
        log.firstGoal = null;
      } else addSystemRow(log, log.coordinator, event, "person", `${capitalize(name)} joined${role && role !== name && role !== "worker" ? ` as ${role}` : ""}`);
      return;
    }
    case "agent.left":
      return addSystemRow(log, log.coordinator, event, "person", `${capitalize(event.data.name)} left the team`);
    case "agent.returned":
      return addSystemRow(log, log.coordinator, event, "person", `${capitalize(event.data.name)} is back on the team`);
    case "agent.promoted":
      return addSystemRow(log, log.coordinator, event, "person", `${capitalize(event.data.name)} is now a permanent member`);
    case "node.created": {
      const { node_id, title, lane } = event.data;
      return updateNode(log, node_id, { title, lane: lane as Lane });
    }
    case "node.assigned":
    case "node.started": {
      const { node_id, agent_id } = event.data;
      const isNew = log.nodes[node_id]?.agentId !== agent_id;
      updateNode(log, node_id, { agentId: agent_id, status: event.type === "node.started" ? "running" : "assigned" });
      if (event.type === "node.assigned" && event.data.by) return addTaskRow(log, node_id, event, "started", `${capitalize(nameOf(log, event.data.by))} started {node} again`);
      if (event.type === "node.assigned" && isNew) addTaskRow(log, node_id, event, "assigned", "Was assigned {node}");
      return;
    }
    case "thread.opened":
      return updateNode(log, event.data.node_id, { agentId: event.data.agent_id });
    case "turn.added":
      return applyTurn(log, event);
    case "tool.result":
      return applyToolResult(log, event);
    case "message.sent":
    case "question.asked":
      return applyMessage(log, event);
    case "reply.act_undone":
      // The question is open again.
      if (event.data.kind === "answered") delete writable(log, "answers")[event.data.about];
      return;
    case "question.answered": {
      const { message_id, text, decision, is_closed } = event.data;
      writable(log, "answers")[message_id] = { text, decision: decision ?? null, isClosed: is_closed ?? false, at: event.at };
      return;
    }
    default:
      return applyStatusEvent(log, event);
  }
}

function applyStatusEvent(log: MutableLog, event: Event): void {
  switch (event.type) {
    case "node.completed":
    case "node.partial":
    case "node.failed":
    case "node.cancelled":
      return applyEnd(log, event);
    case "node.waiting":
      updateNode(log, event.data.node_id, { status: "waiting" });
      // The conversation shows the question itself.
      if (event.data.on.some((target) => /^(answer|approval):/.test(target))) return;
      // The agent was woken by a message and waits for the same thing again: that is not news.
      if (lastWaitReason(log, event.data.node_id) === waitDetail(event.data.reason ?? "")) return tellWait(log, event.data.node_id, WAITS);
      return addTaskRow(log, event.data.node_id, event, "waiting", WAITS, "plain", waitDetail(event.data.reason ?? ""));
    case "node.stalled":
      return addTaskRow(log, event.data.node_id, event, "waiting", "{node} has shown no progress for a while", "wait");
    case "node.checkpoint":
      return addTaskRow(log, event.data.node_id, event, "note", "Saved the state of {node}", "plain", event.data.summary);
    case "stage.started":
      return addSystemRow(log, log.coordinator, event, "stage", `Stage ${event.data.name} began with ${event.data.nodes.length} tasks`);
    case "stage.ended":
      return addSystemRow(log, log.coordinator, event, "stage", `Stage ${event.data.name} ended: ${event.data.status}`);
    case "stage.reconvened":
      return addSystemRow(log, log.coordinator, event, "stage", `Reviewed stage ${event.data.name}`, "plain", event.data.assessment);
    case "thread.compacted":
      return addTaskRow(log, event.data.node_id, event, "note", "Continued {node} from a summary of the work so far");
    case "network.reached":
      return addTaskRow(log, event.data.node_id, event, "network", `A command for {node} reached ${event.data.host}${event.data.use === "web" ? "" : ` (${event.data.use})`}`);
    case "network.refused":
      return addTaskRow(log, event.data.node_id, event, "network", "A command for {node} was refused the network", "wait", event.data.sentences.join(" "));
    case "folder.changed":
      return applyFolderChange(log, event);
    case "model.failed":
      return addTaskRow(log, event.data.node_id, event, "model", "A model call for {node} failed", "fail", event.data.reason);
    case "call.lost":
      // A call that failed, and the end of a task, have a row of their own.
      if (event.data.cause === "failed" || event.data.cause === "ended") return;
      if (!event.data.cause) return addTaskRow(log, event.data.node_id, event, "model", "A model call for {node} got no reply; its estimated cost is counted");
      return addTaskRow(log, event.data.node_id, event, "model", "A model call for {node} was interrupted, for example by a restart, and is made again", "wait");
    case "trigger.fired":
      return addSystemRow(log, event.data.agent_id, event, "clock", "Started by a trigger");
    case "memory.written":
      return addSystemRow(log, event.data.agent_id, event, "note", event.data.path ? `Wrote ${event.data.path}` : "Remembered something about you");
    case "team.paused":
      return addSystemRow(log, log.coordinator, event, "team", "The team was paused");
    case "team.resumed":
      if (event.data.goal) return addGoal(log, event, event.data.goal);
      return addSystemRow(log, log.coordinator, event, "team", "The team was resumed");
    case "team.changed":
      return addSystemRow(log, log.coordinator, event, "team", "The team's settings were changed", "plain", event.data.changed.join(", ").replaceAll("_", " "));
    case "team.stopped":
      return addSystemRow(log, log.coordinator, event, "team", stoppedTeamText(event.data.goal_status));
    case "work.stopped":
      return addSystemRow(log, log.coordinator, event, "team", "All work was stopped", "wait");
    case "work.resumed":
      return addSystemRow(log, log.coordinator, event, "team", "All work was resumed");
    case "team.archived":
      return addSystemRow(log, log.coordinator, event, "team", "The team was archived");
    case "team.restored":
      return addSystemRow(log, log.coordinator, event, "team", "The team was taken out of the archive");
    case "team.completed":
      return addSystemRow(log, log.coordinator, event, "team", "The team completed its goal", "done");
    default:
      return;
  }
}

function applyFolderChange(log: MutableLog, event: Extract<Event, { type: "folder.changed" }>): void {
  const { node_id, folder, paths, count } = event.data;
  const files = count === 1 ? "1 file" : `${count} files`;
  if (node_id === null) return addSystemRow(log, log.coordinator, event, "note", `You put ${files} of folders/${folder} back`, "plain", paths.join(", "));
  return addTaskRow(log, node_id, event, "note", `Changed ${files} of folders/${folder} for {node}`, "plain", paths.join(", "));
}

type EndEvent = Extract<Event, { type: "node.completed" | "node.partial" | "node.failed" | "node.cancelled" }>;

function applyEnd(log: MutableLog, event: EndEvent): void {
  const { node_id, reason, result, doubts } = event.data;
  const hasDoubts = Boolean(doubts?.length);
  endOpenCalls(log, node_id, event.at);
  updateNode(log, node_id, { status: event.type.slice("node.".length) as NodeSummary["status"], stopReason: reason ?? null, hasDoubts });
  switch (event.type) {
    case "node.completed":
      return hasDoubts ? addTaskRow(log, node_id, event, "done", "Finished {node}, with doubts", "wait") : addTaskRow(log, node_id, event, "done", "Finished {node}", "done");
    case "node.partial":
      return addTaskRow(log, node_id, event, "partial", "{node} ended with a partial result", "wait", stoppedText(reason ?? null));
    case "node.failed":
      return addTaskRow(log, node_id, event, "failed", "{node} failed", "fail", result ?? "");
    case "node.cancelled":
      if (!event.data.by) return addTaskRow(log, node_id, event, "cancelled", "{node} was cancelled", "plain", result ?? "");
      return addTaskRow(log, node_id, event, "cancelled", `{node} was cancelled by ${nameOf(log, event.data.by)}`);
  }
}

const nameOf = (log: MutableLog, who: string): string => (who === HUMAN ? "you" : capitalize(log.memberNames[who] ?? "an agent"));

/** Note when a task was last heard of. If it starts while calls are open, nobody worked on them since: it waited, or its server was away. */
function noteSign(log: MutableLog, event: Event): void {
  const node = (event.data as { node_id?: unknown }).node_id;
  if (typeof node !== "string" || event.type === "message.sent" || event.type === "question.asked") return;
  const at = Date.parse(event.at);
  const before = log.signs[node];
  const isStart = event.type === "node.started";
  if (isStart && before) changeOpenCalls(log, node, (call) => ({ ...call, waitedMs: call.waitedMs + Math.max(0, at - Math.max(before.at, Date.parse(call.startedAt))) }));
  const isPaused = event.type === "node.waiting" || (event.type === "node.assigned" && before !== undefined);
  // While it is parked, other events about it are no work on it.
  if (before?.isPaused && !isStart) return;
  writable(log, "signs")[node] = { at, isPaused };
}

/** Change the calls of a task that have no result. */
function changeOpenCalls(log: MutableLog, node: string, change: (call: ToolCall) => ToolCall): void {
  const agent = log.nodes[node]?.agentId;
  if (!agent || !log.openCalls[node]) return;
  const rows = writableRows(log, agent);
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i]!;
    if (row.kind !== "tools" || row.nodeId !== node) continue;
    if (row.calls.every((call) => call.endedAt !== null)) return;
    rows[i] = { ...row, calls: row.calls.map((call) => (call.endedAt === null ? change(call) : call)) };
  }
}

/** Change what is known of a task. A change without an effect makes no copy. */
function updateNode(log: MutableLog, node: string, change: Partial<NodeSummary>): void {
  const known = log.nodes[node] ?? { title: "", lane: "work", agentId: null, status: null, stopReason: null, hasDoubts: false };
  const isNew = !log.nodes[node] || Object.entries(change).some(([name, value]) => known[name as keyof NodeSummary] !== value);
  if (known.status === "waiting" && change.status && change.status !== "waiting") tellWait(log, node, WAITED);
  if (isNew) writable(log, "nodes")[node] = { ...known, ...change };
}

function addSystemRow(
  log: MutableLog,
  agent: string | null,
  event: Event,
  icon: SystemRow["icon"],
  text: string,
  tone: Tone = "plain",
  detail = "",
  nodeId: string | null = null,
): void {
  if (agent === null) return;
  writableRows(log, agent).push({ kind: "system", key: `s${event.seq}`, seq: event.seq, at: event.at, icon, tone, text, detail, nodeId });
}

/** Add a goal of the team as the person's message to the coordinator. The first event of a team comes before its coordinator's. */
function addGoal(log: MutableLog, event: Event, goal: string): void {
  const key = `goal${event.seq}`;
  const row: MessageRow = { kind: "message", key, seq: event.seq, at: event.at, id: key, sender: HUMAN, recipient: log.coordinator ?? "", messageKind: "message", text: goal, nodeId: null, isGoal: true };
  if (log.coordinator) writableRows(log, log.coordinator).push(row);
  else log.firstGoal = row;
}

/** Add a row about a task to its agent's conversation. Replies and reflections get rows only for failures. */
function addTaskRow(
  log: MutableLog,
  node: string,
  event: Event,
  icon: SystemRow["icon"],
  text: string,
  tone: Tone = "plain",
  detail = "",
): void {
  const known = log.nodes[node];
  if (!known?.agentId || (known.lane !== "work" && tone !== "fail")) return;
  addSystemRow(log, known.agentId, event, icon, text, tone, detail, node);
}

/** Return the reason of the task's last row if that row says that it waits. */
function lastWaitReason(log: MutableLog, node: string): string | null {
  const rows = log.rowsByAgent[log.nodes[node]?.agentId ?? ""] ?? [];
  const last = rows.findLast((row) => row.kind === "system" && row.nodeId === node);
  return last?.kind === "system" && last.icon === "waiting" ? last.detail : null;
}

const WAITS = "{node} waits";
const WAITED = "{node} waited";

/** Change what the task's last row about a wait says: the wait is over, or goes on after a message. */
function tellWait(log: MutableLog, node: string, text: typeof WAITS | typeof WAITED): void {
  const agent = log.nodes[node]?.agentId;
  if (!agent) return;
  const rows = log.rowsByAgent[agent] ?? [];
  const at = rows.findLastIndex((row) => row.kind === "system" && row.nodeId === node && (row.text === WAITS || row.text === WAITED));
  const row = rows[at];
  if (row?.kind === "system" && row.text !== text) writableRows(log, agent)[at] = { ...row, text };
}

/** End the calls that have no result. No call outlives its turn, and an interrupted call leaves no event of its own. */
function endOpenCalls(log: MutableLog, node: string, at: string): void {
  if (!log.nodes[node]?.agentId || !log.openCalls[node]) return;
  changeOpenCalls(log, node, (call) => ({ ...call, endedAt: at }));
  writable(log, "openCalls")[node] = 0;
}

/** Tools whose calls are not shown: the conversation shows their effect, such as a message or a question. */
const CALLS_SHOWN_ELSEWHERE = new Set(["ask_human", "send_message", "no_work_needed", "start_work"]);

function applyTurn(log: MutableLog, event: Extract<Event, { type: "turn.added" }>): void {
  const { agent_id, node_id, thread_id, text, calls } = event.data;
  updateNode(log, node_id, { agentId: agent_id });
  const lane = log.nodes[node_id]!.lane;
  if (lane === "reflection") return;
  endOpenCalls(log, node_id, event.at);
  const rows = writableRows(log, agent_id);
  // The text of a reply arrives as a message, and the text beside `finish` or `publish` as the result. Showing it here would repeat it.
  const isLastWord = calls.some((call) => call.name === "finish" || call.name === "publish");
  if (text.trim() && lane === "work" && !isLastWord) {
    rows.push({ kind: "text", key: `w${event.seq}`, seq: event.seq, at: event.at, nodeId: node_id, text });
  }
  const shownCalls = calls.filter((call) => !CALLS_SHOWN_ELSEWHERE.has(call.name));
  if (shownCalls.length === 0) return;
  writable(log, "openCalls")[node_id] = shownCalls.length;
  const newCalls: ToolCall[] = shownCalls.map((call) => ({
    id: call.id,
    name: call.name,
    arguments: call.arguments,
    reading: call.reading ?? "",
    startedAt: event.at,
    endedAt: null,
    waitedMs: 0,
    failed: false,
    text: "",
    threadId: thread_id,
  }));
  const lastRow = rows.at(-1);
  if (lastRow?.kind === "tools" && lastRow.nodeId === node_id) {
    rows[rows.length - 1] = { ...lastRow, calls: [...lastRow.calls, ...newCalls] };
  } else {
    rows.push({ kind: "tools", key: `c${event.seq}`, seq: event.seq, at: event.at, nodeId: node_id, calls: newCalls });
  }
}

function applyToolResult(log: MutableLog, event: Extract<Event, { type: "tool.result" }>): void {
  const { node_id, call_id, failed, text } = event.data;
  const agent = log.nodes[node_id]?.agentId;
  if (!agent) return;
  const rows = writableRows(log, agent);
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i]!;
    if (row.kind !== "tools" || row.nodeId !== node_id) continue;
    // Models reuse call ids in later turns, so take the last call with this id that is still open.
    const at = row.calls.findLastIndex((call) => call.id === call_id && call.endedAt === null);
    if (at < 0) continue;
    const ended = row.calls[at]!;
    // The answer of a call that waits arrives while its task is parked.
    const sign = log.signs[node_id];
    const waitedMs = ended.waitedMs + (sign?.isPaused ? Math.max(0, Date.parse(event.at) - Math.max(sign.at, Date.parse(ended.startedAt))) : 0);
    // Calls are made one after the other: the next one starts now.
    const calls = row.calls.map((call): ToolCall => (call === ended ? { ...call, endedAt: event.at, waitedMs, failed, text } : call.endedAt === null ? { ...call, startedAt: event.at, waitedMs: 0 } : call));
    writable(log, "openCalls")[node_id] = (log.openCalls[node_id] ?? 1) - 1;
    rows[i] = { ...row, calls };
    return;
  }
}

function applyMessage(log: MutableLog, event: Extract<Event, { type: "message.sent" | "question.asked" }>): void {
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
    edits: (event.type === "message.sent" && event.data.edits) || undefined,
  };
  const agents = new Set([sender, recipient].filter((id) => id !== HUMAN && id !== SYSTEM));
  // A worker's question is also shown in the coordinator's conversation, where the person looks first.
  if (event.type === "question.asked" && log.coordinator) agents.add(log.coordinator);
  for (const id of agents) writableRows(log, id).push(row);
}
