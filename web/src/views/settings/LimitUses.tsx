/** LimitUses: what a goal has used of each of its limits, what is left, and what waits for more. */
import type { Schemas } from "@/api/client";
import { compactNumber, duration, money } from "@/lib/format";
import { Meter } from "@/ui";

type Use = Schemas["LimitUse"];
export type Budget = Schemas["GoalBudget"];

const TITLES: Record<Use["name"], string> = { usd: "Money", tokens: "Tokens", turns: "Turns of the coordinator", seconds: "Working time of the coordinator" };

function amount(name: Use["name"], value: number): string {
  if (name === "usd") return money(value);
  return name === "seconds" ? duration(value * 1000) : compactNumber(value);
}

/** Say what is used of a limit; nothing of a time that has not begun. */
function usedText({ name, limit, used }: Use): string {
  if (limit === null) return `${amount(name, used)} used`;
  return name === "seconds" && used === 0 ? `${amount(name, limit)} in total` : `${amount(name, used)} of ${amount(name, limit)}`;
}

export function LimitUses({ budget }: { budget: Budget }) {
  return (
    <div className="flex flex-col gap-4">
      {budget.waits && (
        <p role="status" className="max-w-[72ch] rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">
          {budget.waits === "goal"
            ? "The work stopped because a limit is used up. Raise that limit above what is used, and the work goes on by itself."
            : "The budget is used up, so cycles and scheduled work wait. Raise it, and they go on by themselves."}
        </p>
      )}
      <dl className="grid grid-cols-2 gap-x-8 gap-y-4 max-sm:grid-cols-1">
        {/* An amount without a limit and without use is hidden: the price of a model may be unknown. */}
        {budget.limits.filter(({ limit, used }) => limit !== null || used > 0).map((use) => {
          const { name, limit, used, left } = use;
          return (
            <div key={name} className="text-sm">
              <dt className="font-medium">{TITLES[name]}</dt>
              <dd className="tabular mb-1.5 flex justify-between gap-3 text-ink-2">
                <span>{usedText(use)}</span>
                <span>{left === null ? "no limit" : `${amount(name, left)} left`}</span>
              </dd>
              {limit !== null && (
                <dd>
                  <Meter value={used} max={limit} tone={used >= limit ? "fail" : used >= 0.8 * limit ? "wait" : "plain"} label={`${TITLES[name]}: ${amount(name, used)} of ${amount(name, limit)}`} />
                </dd>
              )}
            </div>
          );
        })}
      </dl>
    </div>
  );
}
