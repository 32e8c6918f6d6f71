/** Budget fields: the limits of a goal as a form shows and sends them. Time is entered in minutes. */
import { duration } from "@/lib/format";
import type { Budget } from "@/views/settings/LimitUses";

type Name = Budget["limits"][number]["name"];
export type Totals = Record<Name, string>;

export const LIMITS: readonly { name: Name; label: string; step: string; factor: number }[] = [
  { name: "usd", label: "Dollars", step: "any", factor: 1 },
  { name: "tokens", label: "Tokens", step: "1", factor: 1 },
  { name: "turns", label: "Turns", step: "1", factor: 1 },
  { name: "seconds", label: "Minutes", step: "any", factor: 60 },
];

/** Return the limits as the fields show them; an empty field has no limit. */
export function totalsOf(budget: Budget): Totals {
  const limitOf = (name: Name) => budget.limits.find((use) => use.name === name)?.limit ?? null;
  const text = (name: Name, factor: number): string => {
    const limit = limitOf(name);
    if (limit === null) return "";
    return name === "usd" && limit >= 0.01 ? limit.toFixed(2) : String(Math.round((limit / factor) * 1e4) / 1e4);
  };
  return Object.fromEntries(LIMITS.map(({ name, factor }) => [name, text(name, factor)])) as Totals;
}

/** Name the limits of the last goal, but for money, that hold for the next one too; empty: it has none. */
export function otherLimits(budget: Budget): string {
  const named = budget.limits.flatMap(({ name, limit }) => (limit === null || name === "usd" ? [] : name === "seconds" ? [`${duration(limit * 1000)} of working time`] : [`${limit.toLocaleString("en")} ${name}`]));
  return named.join(", ");
}

/** Return the changed limits as they are sent; null while one of them is not a number above zero. */
export function changedLimits(changes: Partial<Totals>): Partial<Record<Name, number>> | null {
  const limits = LIMITS.flatMap(({ name, factor }) => (changes[name] === undefined ? [] : [[name, Number(changes[name]) * factor] as const]));
  return limits.length > 0 && limits.every(([, limit]) => limit > 0 && Number.isFinite(limit)) ? Object.fromEntries(limits) : null;
}
