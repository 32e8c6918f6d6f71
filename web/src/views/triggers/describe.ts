/** Words: a trigger as a sentence. */
import { duration, plural } from "@/lib/format";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SHORT = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

function dayNumber(text: string): number | null {
  const named = SHORT.indexOf(text.toUpperCase().slice(0, 3));
  if (named >= 0) return named;
  return /^[0-7]$/.test(text) ? Number(text) % 7 : null;
}

function days(field: string): string | null {
  if (field === "*" || field === "?") return "every day";
  if (/^(1-5|mon-fri)$/i.test(field)) return "on weekdays";
  if (/^(0,6|6,0|sat,sun|sun,sat|6-7)$/i.test(field)) return "at weekends";
  const numbers = field.split(",").map(dayNumber);
  if (numbers.some((one) => one === null)) return null;
  const names = numbers.map((one) => DAYS[one!]!);
  return `every ${names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]}`;
}

const two = (text: string): string => text.padStart(2, "0");

/** A cron line in words, if it is one of the usual ones; otherwise the line itself. */
export function cronWords(line: string): string {
  const fields = line.trim().split(/\s+/);
  if (fields.length !== 5) return line;
  const [minute, hour, date, month, week] = fields as [string, string, string, string, string];
  const everyMinutes = /^\*\/(\d+)$/.exec(minute)?.[1];
  const isAnyDay = date === "*" && month === "*";
  if (isAnyDay && hour === "*") {
    const on = days(week);
    const suffix = on === "every day" ? "" : `, ${on}`;
    if (on !== null && minute === "*") return `Every minute${suffix}`;
    if (on !== null && everyMinutes) return `Every ${everyMinutes} minutes${suffix}`;
    if (on !== null && /^\d+$/.test(minute)) return minute === "0" ? `Every hour${suffix}` : `Every hour at ${plural(Number(minute), "minute")} past${suffix}`;
  }
  const everyHours = /^\*\/(\d+)$/.exec(hour)?.[1];
  if (isAnyDay && week === "*" && everyHours && /^\d+$/.test(minute)) return `Every ${everyHours} hours${minute === "0" ? "" : ` at ${plural(Number(minute), "minute")} past`}`;
  if (!/^\d+$/.test(minute) || !/^\d+(,\d+)*$/.test(hour)) return line;
  const times = hour.split(",").map((one) => `${two(one)}:${two(minute)}`).join(" and ");
  if (isAnyDay) {
    const on = days(week);
    return on === null ? line : `${on.charAt(0).toUpperCase()}${on.slice(1)} at ${times}`;
  }
  if (/^\d+$/.test(date) && month === "*" && week === "*") return `On day ${date} of every month at ${times}`;
  return line;
}

const seconds = (value: unknown): string => {
  const total = Number(value);
  const units: [number, string][] = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  for (const [size, name] of units) if (total >= size && total % size === 0) return plural(total / size, name);
  return duration(total * 1000);
};

const EVENTS: Record<string, string> = {
  "node.completed": "a task is done",
  "node.failed": "a task fails",
  "node.*": "anything happens to a task",
  "message.sent": "a message is sent",
  "question.asked": "somebody asks a question",
  "stage.ended": "a stage ends",
  "memory.written": "somebody notes something down",
};

export interface Described {
  type: string;
  config: Record<string, unknown>;
  zone?: string;
}

/** When it fires. */
export function whenWords({ type, config, zone }: Described): string {
  const place = zone && zone !== "UTC" ? ` (${zone})` : type === "scheduled" || type === "at_time" ? " (UTC)" : "";
  switch (type) {
    case "scheduled":
      return `${cronWords(String(config.cron ?? ""))}${place}`;
    case "delayed":
      return `Once, after ${seconds(config.delay_seconds)}`;
    case "at_time":
      return `Once, at ${String(config.at ?? "").replace("T", " ")}${place}`;
    case "heartbeat": {
      const hours = typeof config.hours === "string" ? `, between ${config.hours.replace("-", " and ")}` : "";
      return `After ${seconds(config.interval_seconds)} of rest${config.when === "always" ? "" : ", if there is news"}${hours}`;
    }
    case "on_idle":
      return `When it has been idle for ${seconds(config.idle_seconds)}`;
    case "on_event":
      return `When ${EVENTS[String(config.event_pattern)] ?? `${String(config.event_pattern)} happens`}`;
    case "webhook":
      return "When somebody calls its address";
    default:
      return type;
  }
}

/** What it does then. */
export function actionWords(action: string, payload: Record<string, unknown>, agent: string): string {
  switch (action) {
    case "wake_agent":
      return typeof payload.task === "string" && payload.task ? payload.task : `Wakes ${agent}`;
    case "send_message":
      return `Sends a message: ${String(payload.content ?? "")}`;
    case "run_node":
      return "Starts a task again";
    case "run_callback":
      return `Calls ${String(payload.callback ?? "")}`;
    default:
      return action;
  }
}
