/** Cost days: what was spent on each day, in a few parts that a person can tell apart. */
import type { Schemas } from "@/api/client";

export type DayPart = Schemas["DayPart"];
export type Measure = "usd" | "tokens";
interface Series {
  key: string;
  name: string;
  total: number;
}
interface Day {
  day: string;
  total: number;
  calls: number;
  unpriced: number;
  /** The value of each series, in their order. */
  values: number[];
}

/** So many parts have a shade each; the others are one part together. */
export const MOST_PARTS = 5;
const OTHERS = "others";
const DAY_MS = 86_400_000;

/** Return all days from the first to the last, also those on which nothing was spent, and the parts of them, the largest first. */
export function costDays(parts: readonly DayPart[], firstDay: string, lastDay: string, nameOf: (part: DayPart) => string): { measure: Measure; series: Series[]; days: Day[] } {
  const measure: Measure = parts.some((part) => part.usd > 0) ? "usd" : "tokens";
  const totals = new Map<string, Series>();
  for (const part of parts) {
    const known = totals.get(part.key);
    totals.set(part.key, { key: part.key, name: nameOf(part), total: (known?.total ?? 0) + part[measure] });
  }
  const sorted = [...totals.values()].sort((a, b) => b.total - a.total);
  // One alone is as short as the word for several.
  const shown = sorted.length > MOST_PARTS + 1 ? sorted.slice(0, MOST_PARTS) : sorted;
  const rest = sorted.slice(shown.length);
  const series = rest.length > 0 ? [...shown, { key: OTHERS, name: `${rest.length} others`, total: rest.reduce((sum, one) => sum + one.total, 0) }] : shown;
  const place = new Map(series.map((one, index) => [one.key, index]));
  // Days before the first cost say nothing; one day alone would be a single bar, which is what there is.
  const first = parts[0]?.day ?? lastDay;
  const days: Day[] = [];
  for (let at = Date.parse(first < firstDay ? firstDay : first); at <= Date.parse(lastDay); at += DAY_MS) days.push({ day: new Date(at).toISOString().slice(0, 10), total: 0, calls: 0, unpriced: 0, values: series.map(() => 0) });
  const byDay = new Map(days.map((day) => [day.day, day]));
  for (const part of parts) {
    const day = byDay.get(part.day);
    if (!day) continue;
    day.values[place.get(part.key) ?? series.length - 1]! += part[measure];
    day.total += part[measure];
    day.calls += part.calls;
    day.unpriced += part.unpriced;
  }
  return { measure, series, days };
}

/** Return what the day will cost at its pace, beside what it may cost. */
export function paceText(today: Schemas["DayCosts"], money: (usd: number) => string): string {
  const { forecast_usd: forecast, limit_usd: limit, is_reached: isReached } = today;
  if (forecast === null || forecast === undefined || isReached) return "";
  return `At today’s pace ${money(forecast)} by midnight UTC${limit === null || limit === undefined ? "; there is no daily limit" : `; the limit is ${money(limit)}`}.`;
}
