/** Time buckets: the cost of model calls in equal intervals of time. */
export interface CallCost {
  at: number;
  usd: number;
  tokens: number;
  agent: string;
}
interface TimeBucket {
  from: number;
  usd: number;
  tokens: number;
  calls: number;
  /** The value of each agent, largest first. */
  parts: { agent: string; value: number }[];
}

const MINUTE_MS = 60_000;
const WIDTHS_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 6 * 60 * MINUTE_MS, 24 * 60 * MINUTE_MS, 7 * 24 * 60 * MINUTE_MS] as const;
const MAX_BUCKETS = 48;

/** Return the smallest width that needs at most `MAX_BUCKETS` buckets. */
export function bucketWidthMs(from: number, to: number): number {
  return WIDTHS_MS.find((widthMs) => (to - from) / widthMs <= MAX_BUCKETS) ?? 30 * 24 * 60 * MINUTE_MS;
}

/** Return the buckets of all calls. They begin at whole hours and days of the browser's time zone. */
export function timeBuckets(calls: readonly CallCost[], measure: "usd" | "tokens", zoneMinutes = -new Date().getTimezoneOffset()): { widthMs: number; buckets: TimeBucket[] } {
  if (calls.length === 0) return { widthMs: WIDTHS_MS[0], buckets: [] };
  const from = Math.min(...calls.map((call) => call.at));
  const to = Math.max(...calls.map((call) => call.at));
  const widthMs = bucketWidthMs(from, to);
  const offsetMs = zoneMinutes * MINUTE_MS;
  const bucketStart = (at: number): number => Math.floor((at + offsetMs) / widthMs) * widthMs - offsetMs;
  const buckets: TimeBucket[] = [];
  for (let at = bucketStart(from); at <= to; at += widthMs) buckets.push({ from: at, usd: 0, tokens: 0, calls: 0, parts: [] });
  const first = bucketStart(from);
  for (const call of calls) {
    const bucket = buckets[Math.round((bucketStart(call.at) - first) / widthMs)];
    if (!bucket) continue;
    bucket.usd += call.usd;
    bucket.tokens += call.tokens;
    bucket.calls += 1;
    const part = bucket.parts.find((other) => other.agent === call.agent);
    if (part) part.value += call[measure];
    else bucket.parts.push({ agent: call.agent, value: call[measure] });
  }
  for (const bucket of buckets) bucket.parts.sort((a, b) => b.value - a.value);
  return { widthMs, buckets };
}
