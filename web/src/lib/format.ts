/** Format: times, money, sizes and numbers as text. */

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const secondsFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayFormat = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const dateFormat = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

export const clockTimeWithSeconds = (at: string): string => secondsFormat.format(new Date(at));
export const clockTime = (at: string): string => clockFormat.format(new Date(at));
export const fullTime = (at: string): string => fullFormat.format(new Date(at));
export const dayKey = (at: string): string => new Date(at).toDateString();

export function dayLabel(at: string, now = new Date()): string {
  const date = new Date(at);
  if (date.toDateString() === now.toDateString()) return "Today";
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  return date.toDateString() === yesterday.toDateString() ? "Yesterday" : dayFormat.format(date);
}

/** Return the time for today, the date for other days. */
export const shortTime = (at: string): string =>
  dayKey(at) === new Date().toDateString() ? clockTime(at) : dateFormat.format(new Date(at));

/** Return until when something lasts: the time for today, with the date for other days. */
export const untilTime = (at: string): string => (dayKey(at) === new Date().toDateString() ? clockTime(at) : `${dateFormat.format(new Date(at))}, ${clockTime(at)}`);

export function money(usd: number): string {
  if (usd === 0) return "$0";
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

export function fileSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KiB`;
  return bytes < 1024 ** 3 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

export function compactNumber(n: number): string {
  if (n < 1000) return String(n);
  // From 999,500 on, thousands would be rounded to 1000k.
  return n < 999_500 ? `${(n / 1000).toFixed(n < 9_950 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

export function duration(ms: number): string {
  if (ms > 0 && ms < 50) return "<0.1s";
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h${minutes % 60 > 0 ? ` ${minutes % 60}m` : ""}`;
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** Return seconds in the largest unit that divides them: 30 seconds, 15 minutes, 1 hour. */
export function inUnits(value: unknown): string {
  const total = Number(value);
  const units: [number, string][] = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  for (const [size, name] of units) if (total >= size && total % size === 0) return plural(total / size, name);
  return duration(total * 1000);
}

/** Return the name with a capital first letter. Agents' names are stored in lower case. */
export const capitalize = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/** Return the lines of a field, without empty ones. */
export const linesOf = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);
