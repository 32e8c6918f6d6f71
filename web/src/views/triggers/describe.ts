/** Describe: a trigger's timing and action as English text. */
import { inUnits, plural } from "@/lib/format";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAY_ABBREVIATIONS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

function dayNumber(text: string): number | null {
  const named = DAY_ABBREVIATIONS.indexOf(text.toUpperCase().slice(0, 3));
  if (named >= 0) return named;
  return /^[0-7]$/.test(text) ? Number(text) % 7 : null;
}

function describeDays(field: string): string | null {
  if (field === "*" || field === "?") return "every day";
  if (/^(1-5|mon-fri)$/i.test(field)) return "on weekdays";
  if (/^(0,6|6,0|sat,sun|sun,sat|6-7)$/i.test(field)) return "at weekends";
  const numbers = field.split(",").map(dayNumber);
  if (numbers.some((one) => one === null)) return null;
  const names = numbers.map((one) => DAYS[one!]!);
  return `every ${names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]}`;
}

const twoDigits = (text: string): string => text.padStart(2, "0");

/** Return a cron expression as English text, or the expression itself if it is an unusual one. */
export function describeCron(line: string): string {
  const fields = line.trim().split(/\s+/);
  if (fields.length !== 5) return line;
  const [minute, hour, date, month, weekday] = fields as [string, string, string, string, string];
  const everyMinutes = /^\*\/(\d+)$/.exec(minute)?.[1];
  const isAnyDay = date === "*" && month === "*";
  if (isAnyDay && hour === "*") {
    const dayText = describeDays(weekday);
    const suffix = dayText === "every day" ? "" : `, ${dayText}`;
    if (dayText !== null && minute === "*") return `Every minute${suffix}`;
    if (dayText !== null && everyMinutes) return `Every ${everyMinutes} minutes${suffix}`;
    if (dayText !== null && /^\d+$/.test(minute)) return minute === "0" ? `Every hour${suffix}` : `Every hour at ${plural(Number(minute), "minute")} past${suffix}`;
  }
  const everyHours = /^\*\/(\d+)$/.exec(hour)?.[1];
  if (isAnyDay && weekday === "*" && everyHours && /^\d+$/.test(minute)) return `Every ${everyHours} hours${minute === "0" ? "" : ` at ${plural(Number(minute), "minute")} past`}`;
  if (!/^\d+$/.test(minute) || !/^\d+(,\d+)*$/.test(hour)) return line;
  const times = hour.split(",").map((one) => `${twoDigits(one)}:${twoDigits(minute)}`).join(" and ");
  if (isAnyDay) {
    const dayText = describeDays(weekday);
    return dayText === null ? line : `${dayText.charAt(0).toUpperCase()}${dayText.slice(1)} at ${times}`;
  }
  if (/^\d+$/.test(date) && month === "*" && weekday === "*") return `On day ${date} of every month at ${times}`;
  return line;
}

const EVENT_TEXT: Record<string, string> = {
  "node.completed": "a task is done",
  "node.partial": "a limit ends a task early",
  "node.failed": "a task fails",
  "node.*": "anything happens to a task",
  "message.sent": "a message is sent",
  "question.asked": "an agent asks a question",
  "stage.ended": "a stage ends",
  "memory.written": "an agent writes a note",
};

interface TriggerTiming {
  type: string;
  config: Record<string, unknown>;
  zone?: string;
}

/** Return when a trigger fires. */
export function describeTiming({ type, config, zone }: TriggerTiming): string {
  const zoneText = zone && zone !== "UTC" ? ` (${zone})` : type === "scheduled" || type === "at_time" ? " (UTC)" : "";
  switch (type) {
    case "scheduled":
      return `${describeCron(String(config.cron ?? ""))}${zoneText}`;
    case "delayed":
      return `Once, after ${inUnits(config.delay_seconds)}`;
    case "at_time":
      return `Once, at ${String(config.at ?? "").replace("T", " ")}${zoneText}`;
    case "heartbeat": {
      const hours = typeof config.hours === "string" ? `, between ${config.hours.replace("-", " and ")}` : "";
      return `After ${inUnits(config.interval_seconds)} without work${config.when === "always" ? "" : ", if there is news"}${hours}`;
    }
    case "on_idle":
      return `When it has been idle for ${inUnits(config.idle_seconds)}`;
    case "on_event":
      return `When ${EVENT_TEXT[String(config.event_pattern)] ?? `${String(config.event_pattern)} happens`}`;
    case "webhook":
      return "When another program calls its address";
    default:
      return type;
  }
}

/** Return what a trigger does when it fires. */
export function describeAction(action: string, payload: Record<string, unknown>, agent: string): string {
  switch (action) {
    case "wake_agent":
      return typeof payload.task === "string" && payload.task ? payload.task : `Wakes ${agent}`;
    case "send_message":
      return `Sends a message: ${String(payload.content ?? "")}`;
    case "run_node":
      return "Starts a task again";
    case "research":
      return `Researches what is new: ${String(payload.question ?? "")}`;
    case "run_callback":
      return `Calls ${String(payload.callback ?? "")}`;
    default:
      return action;
  }
}
