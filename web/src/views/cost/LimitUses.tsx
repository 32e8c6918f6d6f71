/** LimitUses: what a goal has used of each of its limits, and what is left. */
import type { Schemas } from "@/api/client";
import { compactNumber, duration, money } from "@/lib/format";
import { Meter } from "@/ui";

type Use = Schemas["LimitUse"];
export type Budget = Schemas["GoalBudget"];

/** The limits of a goal in the order in which they are shown; time is entered in minutes. */
export const LIMITS: readonly { name: Use["name"]; label: string; step: string; factor: number }[] = [
  { name: "usd", label: "Dollars", step: "any", factor: 1 },
  { name: "tokens", label: "Tokens", step: "1", factor: 1 },
  { name: "turns", label: "Turns", step: "1", factor: 1 },
  { name: "seconds", label: "Minutes", step: "any", factor: 60 },
];

/** Return a limit as the form takes it. */
export const limitText = (name: Use["name"], limit: number, factor: number): string => (name === "usd" ? limit.toFixed(2) : String(Math.round(limit / factor)));

const TITLES: Record<Use["name"], string> = { usd: "Money", tokens: "Tokens", turns: "Turns of the coordinator", seconds: "Working time" };

function amount(name: Use["name"], value: number): string {
  if (name === "usd") return money(value);
  return name === "seconds" ? duration(value * 1000) : compactNumber(value);
}

export function LimitUses({ budget }: { budget: Budget }) {
  return (
    <dl className="grid grid-cols-2 gap-x-8 gap-y-4 max-sm:grid-cols-1">
      {budget.limits.map(({ name, limit, used, left }) => (
        <div key={name} className="text-sm">
          <dt className="font-medium">{TITLES[name]}</dt>
          <dd className="tabular mb-1.5 flex justify-between gap-3 text-ink-2">
            <span>
              {amount(name, used)} {limit === null ? "used" : `of ${amount(name, limit)}`}
            </span>
            <span>{left === null ? "no limit" : `${amount(name, left)} left`}</span>
          </dd>
          {limit !== null && (
            <dd>
              <Meter value={used} max={limit} tone={used >= limit ? "fail" : used >= 0.8 * limit ? "wait" : "plain"} label={`${TITLES[name]}: ${amount(name, used)} of ${amount(name, limit)}`} />
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
