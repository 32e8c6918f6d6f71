/** Over time: what model calls cost, in equal slots. */
export interface Spent {
  at: number;
  usd: number;
  tokens: number;
  agent: string;
}
export interface Slot {
  from: number;
  usd: number;
  tokens: number;
  calls: number;
  /** By agent, the largest first. */
  parts: { agent: string; value: number }[];
}

const MINUTE = 60_000;
export const WIDTHS = [MINUTE, 5 * MINUTE, 15 * MINUTE, 60 * MINUTE, 6 * 60 * MINUTE, 24 * 60 * MINUTE, 7 * 24 * 60 * MINUTE] as const;
const MOST_SLOTS = 48;

/** The finest slots of which there are not too many. */
export function widthFor(from: number, to: number): number {
  return WIDTHS.find((width) => (to - from) / width <= MOST_SLOTS) ?? 30 * 24 * 60 * MINUTE;
}

/** Slots begin on whole hours and days as the reader's clock has them. */
export function slots(spent: readonly Spent[], measure: "usd" | "tokens", zoneMinutes = -new Date().getTimezoneOffset()): { width: number; slots: Slot[] } {
  if (spent.length === 0) return { width: WIDTHS[0], slots: [] };
  const from = Math.min(...spent.map((one) => one.at));
  const to = Math.max(...spent.map((one) => one.at));
  const width = widthFor(from, to);
  const shift = zoneMinutes * MINUTE;
  const slotOf = (at: number): number => Math.floor((at + shift) / width) * width - shift;
  const found: Slot[] = [];
  for (let at = slotOf(from); at <= to; at += width) found.push({ from: at, usd: 0, tokens: 0, calls: 0, parts: [] });
  const first = slotOf(from);
  for (const one of spent) {
    const slot = found[Math.round((slotOf(one.at) - first) / width)];
    if (!slot) continue;
    slot.usd += one.usd;
    slot.tokens += one.tokens;
    slot.calls += 1;
    const part = slot.parts.find((other) => other.agent === one.agent);
    if (part) part.value += one[measure];
    else slot.parts.push({ agent: one.agent, value: one[measure] });
  }
  for (const slot of found) slot.parts.sort((a, b) => b.value - a.value);
  return { width, slots: found };
}
