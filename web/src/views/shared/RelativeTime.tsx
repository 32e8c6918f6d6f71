/** Time: moments as people say them, with the exact one behind. */
import { useEffect, useState } from "react";
import { fullTime } from "@/lib/format";

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];
const words = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** "in 5 minutes", "yesterday". */
export function away(at: string, now: number): string {
  const gap = Date.parse(at) - now;
  for (const [unit, ms] of STEPS) {
    if (Math.abs(gap) >= ms) return words.format(Math.round(gap / ms), unit);
  }
  return Math.abs(gap) < 5_000 ? "now" : words.format(Math.round(gap / 1000), "second");
}

/** The clock, for what shows how long something takes. */
export function useNow(everyMs = 1000, isRunning = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, isRunning]);
  return now;
}

export function Moment({ at, now, className }: { at: string; now: number; className?: string }) {
  return (
    <time dateTime={at} title={fullTime(at)} className={className}>
      {away(at, now)}
    </time>
  );
}
