/** Snooze times: the moments that a person can put an item off to, in their own time zone. */

export interface SnoozeTime {
  label: string;
  at: Date;
}

const MORNING_HOUR = 9;
const EVENING_HOUR = 18;

const atHour = (now: Date, days: number, hour: number): Date => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);

/** Return the suggestions: later today (not late in the evening), tomorrow morning, and the morning of next Monday. */
export function snoozeTimes(now: Date): SnoozeTime[] {
  const inThreeHours = new Date(now.getTime() + 3 * 3_600_000);
  const evening = atHour(now, 0, EVENING_HOUR);
  const later = inThreeHours < evening ? evening : inThreeHours;
  const daysToMonday = (8 - now.getDay()) % 7 || 7;
  return [
    ...(later.getDate() === now.getDate() ? [{ label: "Later today", at: later }] : []),
    { label: "Tomorrow", at: atHour(now, 1, MORNING_HOUR) },
    { label: "Next week", at: atHour(now, daysToMonday, MORNING_HOUR) },
  ];
}

/** Return a moment as the value of a field for date and time. */
export const fieldValue = (at: Date): string => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
