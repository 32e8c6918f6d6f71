/** Quiet: whether a team may show a toast or a browser notification now. */

interface Reach {
  muted_until: string | null;
  quiet_hours: string;
  quiet_zone: string;
}

/** Stands for “until it is unmuted”. */
export const MUTED_FOREVER = "9999-12-31T00:00:00Z";

export const isMuted = (team: Reach, now: Date): boolean => team.muted_until !== null && Date.parse(team.muted_until) > now.getTime();

/** Whether the team is muted, or it is quiet hours in the team's time zone. */
export const isQuiet = (team: Reach, now: Date): boolean => isMuted(team, now) || isQuietHour(team, now);

function isQuietHour({ quiet_hours, quiet_zone }: Reach, now: Date): boolean {
  const span = /^(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/.exec(quiet_hours.trim());
  if (!span) return false;
  const [begin, end] = [Number(span[1]) * 60 + Number(span[2]), Number(span[3]) * 60 + Number(span[4])];
  const minute = minuteOfDay(now, quiet_zone);
  // Hours such as 22:00-07:00 go on after midnight.
  return begin < end ? begin <= minute && minute < end : minute >= begin || minute < end;
}

function minuteOfDay(now: Date, zone: string): number {
  let shown: string;
  try {
    shown = now.toLocaleTimeString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
  } catch {
    // The server knows a zone that this browser does not.
    shown = now.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  }
  const [hours, minutes] = shown.split(":").map(Number);
  return (hours! % 24) * 60 + minutes!;
}
