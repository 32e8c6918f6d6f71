/** describeEvent: an event in one line of plain words, the agent and task it is about, and where to see it. */
import type { Event } from "@/live/log";
import { capitalize } from "@/lib/format";
import { HUMAN, SYSTEM } from "@/lib/participants";

type Data = Record<string, unknown>;
export interface Names {
  agent: (id: string) => string | undefined;
  node: (id: string) => string | undefined;
}

const text = (data: Data, name: string): string => (typeof data[name] === "string" ? (data[name] as string) : "");
const oneLine = (words: string): string => words.replace(/\s+/g, " ").trim();

/** Events by subject, for the filter: the label and the first parts of their types. */
export const KINDS = [
  ["", "All events", ""],
  ["work", "Tasks", "node,stage,folder"],
  ["talk", "Messages and questions", "message,question,briefing,delivery"],
  ["model", "Model calls", "turn,model,call,thread"],
  ["tools", "Tools and network", "tool,network"],
  ["team", "Team and agents", "team,agent,grant"],
  ["knowledge", "Memory", "memory,insight,knowledge"],
  ["triggers", "Triggers", "trigger"],
] as const;

export const agentOf = (event: Event): string => {
  const data = event.data as Data;
  return text(data, "agent_id") || [text(data, "sender"), text(data, "recipient")].find((id) => id && id !== HUMAN && id !== SYSTEM) || "";
};
export const nodeOf = (event: Event): string => text(event.data as Data, "node_id");

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
      return `Queued for ${who(text(data, "agent_id"))}`;
    case "node.changed":
      return `Changed: ${Object.keys(event.data.changed).map((name) => name.replace(/_id$/, "").replace("_", " ")).join(", ")}`;
    case "node.started":
      return event.data.attempt > 1 ? `Started, attempt ${event.data.attempt}` : "Started";
    case "node.waiting":
      return after("Waits", reason);
    case "node.completed":
    case "node.partial":
    case "node.failed":
    case "node.cancelled":
      return after({ "node.completed": "Done", "node.partial": "Partial", "node.failed": "Failed", "node.cancelled": "Cancelled" }[event.type], oneLine(text(data, "result")));
    case "node.checkpoint":
      return after("Progress", oneLine(text(data, "summary")));
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
      return after("Answered", [event.data.decision, oneLine(event.data.text)].filter(Boolean).join(" · "));
    case "agent.hired":
    case "agent.left":
    case "agent.returned":
    case "agent.promoted":
      return `${capitalize(event.data.name)} ${{ "agent.hired": "joined", "agent.left": "left", "agent.returned": "came back", "agent.promoted": "became a permanent member" }[event.type]}`;
    default: {
      const words = ["text", "summary", "name", "reason", "error", "path", "goal"].map((name) => oneLine(text(data, name))).find(Boolean) ?? "";
      return after(capitalize(event.type.replace(/[._]/g, " ")), words);
    }
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
