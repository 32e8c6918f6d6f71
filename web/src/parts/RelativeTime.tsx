/** RelativeTime: a time as "5 minutes ago", with the exact time in the tooltip. */
import { useEffect, useState } from "react";
import { fullTime } from "@/lib/format";
import { live } from "@/live";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];
const formatter = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** Return a time relative to `now`: "in 5 minutes", "yesterday". */
function relativeTime(at: string, now: number): string {
  const differenceMs = Date.parse(at) - now;
  for (const [unit, ms] of UNITS) {
    if (Math.abs(differenceMs) >= ms) return formatter.format(Math.round(differenceMs / ms), unit);
  }
  return Math.abs(differenceMs) < 5_000 ? "now" : formatter.format(Math.round(differenceMs / 1000), "second");
}

/** Return the current time, updated every `intervalMs`. It stands still on a hidden page, and while the server is away: nobody works then. */
export function useNow(intervalMs = 1000, isRunning = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => document.hidden || live.store.getState().connection !== "live" || setNow(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs, isRunning]);
  return now;
}

export function RelativeTime({ at, now, className }: { at: string; now: number; className?: string }) {
  return (
    <time dateTime={at} title={fullTime(at)} className={className}>
      {relativeTime(at, now)}
    </time>
  );
}
