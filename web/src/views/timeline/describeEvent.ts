/** describeEvent: an event in one line of plain words, the agent and task it is about, and where to see it. */
import type { Event } from "@/live/log";
import { stoppedTeamText } from "@/lib/endings";
import { withoutMarks } from "@/reading/fence";
import { capitalize, compactNumber, duration, money, plural } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";
import { waitText } from "@/lib/waitingReason";

type Data = Record<string, unknown>;
export interface Names {
  agent: (id: string) => string | undefined;
  node: (id: string) => string | undefined;
}

const text = (data: Data, name: string): string => (typeof data[name] === "string" ? (data[name] as string) : "");
/** A row shows one line; the start of a long text is enough for it. */
const LINE_CHARACTERS = 400;
const oneLine = (words: string): string => withoutMarks(words).slice(0, LINE_CHARACTERS).replace(/\s+/g, " ").trim();

/** Events by subject, for the filter: the label and the first parts of their types. */
export const KINDS = [
  ["", "All events", ""],
  ["work", "Tasks", "node,stage,folder,report"],
  ["talk", "Messages and questions", "message,question,briefing,delivery"],
  ["model", "Model calls", "turn,model,call,thread"],
  ["tools", "Tools and network", "tool,network"],
  ["team", "Team and agents", "team,work,agent,grant"],
  ["knowledge", "Memory", "memory,insight,knowledge"],
  ["triggers", "Triggers", "trigger"],
] as const;

export const agentOf = (event: Event): string => {
  const data = event.data as Data;
  return text(data, "agent_id") || [text(data, "sender"), text(data, "recipient")].find((id) => id && id !== HUMAN && id !== SYSTEM) || "";
};
export const nodeOf = (event: Event): string => text(event.data as Data, "node_id");

/** Why no briefing was sent, in words. */
const NO_BRIEFING: Record<string, string> = {
  "already delivered": "you have the result already",
  "not worth it": "it is not important enough",
  "nothing said": "there was nothing to say",
  "no readable answer": "the model's answer could not be read",
};
const noBriefing = (reason: string): string => `no briefing: ${reason.startsWith("told before") ? "you were told before" : (NO_BRIEFING[reason] ?? reason)}`;

/** Return the result of a task in one line. That of looking back on work names the reason in few words. */
function resultText(data: Data): string {
  const result = oneLine(text(data, "result"));
  return result.startsWith("Not briefed: ") ? noBriefing(result.slice("Not briefed: ".length)) : result.replace(/^Briefed: /, "sent the briefing ");
}

const AMOUNTS: Record<string, (amount: number) => string> = {
  usd: money,
  tokens: (amount) => `${compactNumber(amount)} tokens`,
  turns: (amount) => plural(amount, "turn"),
  seconds: (amount) => duration(amount * 1000),
  model_calls: (amount) => plural(amount, "model call"),
};
/** Return by how much limits were changed: "raised the budget by $3.00 and 10 turns". */
function budgetChange(added: Record<string, number>): string {
  const amount = ([name, by]: [string, number]): string => AMOUNTS[name]?.(Math.abs(by)) ?? `${Math.abs(by)} calls of ${name}`;
  const [more, less] = [Object.entries(added).filter(([, by]) => by > 0), Object.entries(added).filter(([, by]) => by < 0)];
  const part = (verb: string, of: typeof more) => of.length > 0 && `${verb} the budget by ${of.map(amount).join(" and ")}`;
  return [part("raised", more), part("lowered", less)].filter(Boolean).join(" and ") || "changed the limits";
}

const CHANGED: Record<string, string> = { assignee_id: "agent", stage_id: "stage", waiting_reason: "reason for waiting" };
const FILED: Record<string, string> = { archive: "archived", restore: "put back into the inbox", snooze: "snoozed", unread: "marked as unread", return: "back in the inbox" };
const KNOWLEDGE: Record<string, string> = { merged: "merged", superseded: "replaced by newer knowledge", maintained: "tidied up" };
const STAGE_ENDS: Record<string, string> = { met: "Stage done", broken: "Stage failed", timed_out: "Stage ran out of time" };

/** Return what happened, without the task's title, which stands beside it. */
export function describeEvent(event: Event, names: Names): string {
  const data = event.data as Data;
  const who = (id: string): string => (id === HUMAN ? "you" : id === SYSTEM ? "agiraph" : capitalize(names.agent(id) ?? id));
  const reason = oneLine(text(data, "reason"));
  const after = (start: string, words: string): string => (words ? `${start}: ${words}` : start);
  switch (event.type) {
    case "node.created":
      return `Task created by ${who(text(data, "creator_id"))}`;
    case "node.assigned":
      return event.data.by ? `Started again by ${who(event.data.by)}` : `Queued for ${who(text(data, "agent_id"))}`;
    case "node.changed":
      return `Changed: ${Object.keys(event.data.changed).map((name) => CHANGED[name] ?? name).join(", ")}`;
    case "node.started":
      return event.data.attempt > 1 ? `Started, attempt ${event.data.attempt}` : "Started";
    case "node.waiting":
      return capitalize(waitText(reason));
    case "node.cancelled":
      return event.data.by ? `Cancelled by ${who(event.data.by)}` : after("Cancelled", resultText(data));
    case "node.completed":
    case "node.partial":
    case "node.failed":
      return after({ "node.completed": "Done", "node.partial": "Partial", "node.failed": "Failed" }[event.type], resultText(data));
    case "node.checkpoint":
      return after("Progress", oneLine(text(data, "summary")));
    case "node.extended":
      return `${capitalize(who(event.data.by))} ${budgetChange(event.data.added)}`;
    case "node.acceptance":
      return after("Must be true when it is done", oneLine(event.data.lines.join("; ")));
    case "node.stalled":
      return "No progress for a long time";
    case "node.output":
      return after("The program wrote", oneLine(event.data.text));
    case "folder.changed":
      return `${event.data.node_id === null ? "You put back" : "Changed"} ${plural(event.data.count, "file")} in folders/${event.data.folder}`;
    case "report.shared":
      return { made: "A link to the report was made", opened: "The link to the report was opened", revoked: "The link to the report was revoked" }[event.data.step];
    case "stage.started":
      return after("Stage began", oneLine(event.data.name));
    case "stage.ended":
      return after(STAGE_ENDS[event.data.status] ?? "Stage ended", oneLine(event.data.name));
    case "stage.reconvened":
      return after(`Stage ${event.data.name} was judged`, oneLine(event.data.assessment));
    case "thread.opened":
      return "Thread opened";
    case "thread.compacted":
      return "Older steps of the thread were summarized";
    case "thread.harvested":
      if (event.data.passed_over) return "No agent reflected on the thread";
      return event.data.insights > 0 ? `Knowledge saved from a thread: ${plural(event.data.insights, "insight")}` : "Reflection on a thread: nothing new to keep";
    case "turn.added": {
      const calls = event.data.calls.map((call) => call.name).join(", ");
      return after("Model replied", [oneLine(event.data.text), calls && `calls ${calls}`].filter(Boolean).join(" · "));
    }
    case "tool.result":
      return after(`${event.data.tool} ${event.data.failed ? "failed" : "answered"}`, oneLine(event.data.text));
    case "message.sent":
    case "question.asked":
      return after(`${capitalize(who(event.data.sender))} to ${who(event.data.recipient)}`, oneLine(event.data.text));
    case "question.answered":
      if (event.data.is_closed) return after("Not answered", oneLine(event.data.text));
      return after("Answered", [event.data.decision, oneLine(event.data.text)].filter(Boolean).join(" · "));
    case "reply.act_undone":
      return after("You undid what a reply did", oneLine(event.data.text));
    case "agent.hired":
    case "agent.left":
    case "agent.returned":
    case "agent.promoted":
      return `${capitalize(event.data.name)} ${{ "agent.hired": "joined", "agent.left": "left", "agent.returned": "came back", "agent.promoted": "became a permanent member" }[event.type]}`;
    case "message.seen":
      return `${plural(event.data.message_ids.length, "message")} received`;
    case "message.filed":
      return `${plural(event.data.message_ids.length, "inbox item")} ${FILED[event.data.filing] ?? event.data.filing}`;
    case "briefing.decided":
      return event.data.sent ? "Briefing sent" : capitalize(noBriefing(reason));
    case "briefing.rated":
      return `You want ${event.data.rating === "up" ? "more" : "fewer"} briefings like this`;
    case "delivery.sent":
      return `Message sent to ${event.data.channel}`;
    case "delivery.failed":
      return after(`Message could not be sent to ${event.data.channel}`, oneLine(event.data.error));
    case "model.failed":
      return after("Model call failed", reason);
    case "call.lost":
      return "A model call got no reply; its estimated cost is counted";
    case "network.reached":
      return `Reached ${event.data.host}`;
    case "network.refused":
      return after("The network was refused", oneLine(event.data.sentences.join(" ")));
    case "grant.made":
      return after("You gave a permission", oneLine(event.data.pattern));
    case "grant.used":
      return `${event.data.tool} was allowed by an earlier permission`;
    case "grant.revoked":
      return "You revoked a permission";
    case "trigger.created":
      return `Trigger created by ${who(event.data.made_by)}`;
    case "trigger.changed":
      return event.data.status === "paused" ? "Trigger paused" : "Trigger changed";
    case "trigger.fired":
      return "Trigger fired";
    case "trigger.postponed":
      return after("Trigger waits", reason.replace(/^budget: /, "the budget is used up: "));
    case "trigger.skipped":
      return after("Trigger skipped", reason === "overlap" ? "the work it started before is not finished" : reason.replace(/^budget: /, "the budget is used up: "));
    case "trigger.ended":
      return after("Trigger ended", reason);
    case "memory.written":
      return event.data.path ? `Note written: ${event.data.path}` : "Memory saved";
    case "insight.learned":
      return "Insight saved";
    case "knowledge.pending":
      return after("Knowledge waits for your confirmation", event.data.path);
    case "knowledge.changed":
      return `Knowledge ${KNOWLEDGE[event.data.verb] ?? event.data.verb}`;
    case "team.created":
      return after("Team created", oneLine(event.data.goal));
    case "team.changed":
      return after("Settings changed", event.data.changed.join(", ").replaceAll("_", " "));
    case "team.resumed":
      return event.data.goal ? after("The team got a new goal", oneLine(event.data.goal)) : "The team was resumed";
    case "team.completed":
      return "The team reached its goal";
    case "team.stopped":
      return stoppedTeamText(event.data.goal_status);
    case "team.restored":
      return "The team was taken out of the archive";
    case "team.paused":
    case "team.archived":
    case "team.deleted":
      return `The team was ${event.type.slice("team.".length)}`;
    case "work.stopped":
      return "All work of all teams was stopped";
    case "work.resumed":
      return "All work of all teams was resumed";
    default:
      // A newer server may have other events.
      return (event as Event).type;
  }
}

/** Return where the thing that an event is about can be seen, below the team's address; null if nowhere. */
export function placeOf(event: Event): { screen: "board" | "threads" | "triggers" | "memory" | "agent"; rest: string; search: string; label: string } | null {
  const data = event.data as Data;
  const agent = agentOf(event);
  const [subject] = event.type.split(".");
  if ((subject === "message" || subject === "question") && agent && text(data, "message_id")) return { screen: "agent", rest: agent, search: `?at=${text(data, "message_id")}`, label: "Open the message" };
  if (text(data, "thread_id")) return { screen: "threads", rest: text(data, "thread_id"), search: "", label: "Open the thread" };
  if (nodeOf(event)) return { screen: "board", rest: "", search: `?node=${nodeOf(event)}`, label: "Open the task" };
  if (subject === "trigger") return { screen: "triggers", rest: "", search: "", label: "Open the triggers" };
  if (subject === "memory" || subject === "insight" || subject === "knowledge") return { screen: "memory", rest: "", search: "", label: "Open the memory" };
  return agent ? { screen: "agent", rest: agent, search: "", label: "Open the agent" } : null;
}
