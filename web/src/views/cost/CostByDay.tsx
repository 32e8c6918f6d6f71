/** CostByDay: what was spent on each of the last days, as bars in parts and as a table. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, errorMessage, unwrap } from "@/api/client";
import { queryKeys } from "@/api/queries";
import { capitalize, compactNumber, money, plural } from "@/lib/format";
import { costDays, type DayPart } from "@/views/cost/costDays";
import { purposeLabel } from "@/views/cost/costTree";
import { ErrorPanel, Loading, Pills } from "@/ui";

const DAYS = 30;
/** Shades from dark to light. Only a state has a colour; the table and the list below say what each shade is. */
const SHADES = ["bg-ink", "bg-ink/75", "bg-ink/55", "bg-ink/40", "bg-ink/27", "bg-ink/15"];
type By = "model" | "purpose" | "agent" | "team";
const SPLITS = { team: [["model", "Model"], ["purpose", "Purpose"], ["agent", "Agent"]], all: [["model", "Model"], ["purpose", "Purpose"], ["team", "Team"]] } as const;

const nameOf = (by: By) => (part: DayPart): string => (by === "purpose" ? purposeLabel(part.key) : by === "agent" ? capitalize(part.name || "former agents") : part.name || "Deleted teams");
/** A day is one of UTC: it has the same name in every zone. */
const dayName = (day: string): string => new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

export function CostByDay({ team }: { team: string }) {
  const [scope, setScope] = useState<"team" | "all">("team");
  const [chosen, setBy] = useState<By>("model");
  const by = SPLITS[scope].some(([name]) => name === chosen) ? chosen : "model";
  const of = scope === "team" ? team : "";
  const history = useQuery({
    queryKey: [...queryKeys.cost(team), "days", of, by] as const,
    queryFn: () => unwrap(api.GET("/api/cost/history", { params: { query: { by, team: of, days: DAYS } } })),
    placeholderData: keepPreviousData,
  });
  return (
    <section aria-labelledby="cost-days">
      <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
        <h2 id="cost-days" className="text-md font-semibold">
          By day
        </h2>
        <Pills label="Whose cost" value={scope} onChange={setScope} options={[["team", "This team"], ["all", "All teams"]]} />
        <Pills label="Each day by" value={by} onChange={setBy} options={SPLITS[scope]} />
      </div>
      {history.isPending ? (
        <Loading label="Loading the cost by day" className="p-0" />
      ) : history.isError && !history.data ? (
        <ErrorPanel title="The cost by day could not be loaded" detail={errorMessage(history.error)} onRetry={() => void history.refetch()} />
      ) : history.data.parts.length === 0 ? (
        <p className="text-sm text-ink-2">Nothing was spent in the last {DAYS} days.</p>
      ) : (
        <Days {...costDays(history.data.parts, history.data.first_day, history.data.today.day, nameOf(history.data.by))} />
      )}
    </section>
  );
}

function Days({ measure, series, days }: ReturnType<typeof costDays>) {
  const value = (amount: number): string => (measure === "usd" ? money(amount) : `${compactNumber(amount)} tokens`);
  const highest = Math.max(...days.map((day) => day.total));
  const parts = (values: readonly number[]) => series.flatMap(({ name }, at) => (values[at]! > 0 ? [`${name} ${value(values[at]!)}`] : []));
  return (
    <>
      <figure>
        <div className="flex gap-3">
          <div className="tabular flex h-[140px] w-16 shrink-0 flex-col justify-between text-right text-xs text-ink-3" aria-hidden>
            <span>{value(highest)}</span>
            <span>0</span>
          </div>
          <ul className="flex h-[140px] min-w-0 flex-1 items-end justify-between gap-px border-b border-line-2" aria-label="Cost by day">
            {days.map(({ day, total, calls, values }) => (
              <li key={day} className="flex h-full max-w-12 min-w-0 flex-1 items-end" title={[`${dayName(day)} · ${value(total)} · ${plural(calls, "call")}`, ...parts(values)].join("\n")}>
                <span className="flex w-full flex-col-reverse gap-px overflow-hidden rounded-t-[2px]" style={{ height: highest > 0 ? `${Math.max(total > 0 ? 2 : 0, (100 * total) / highest)}%` : 0 }} aria-hidden>
                  {values.map((part, at) => part > 0 && <span key={at} className={SHADES[at]} style={{ flexGrow: part / total, flexBasis: 0 }} />)}
                </span>
                <span className="sr-only">
                  {dayName(day)}: {value(total)}. {parts(values).join(", ")}
                </span>
              </li>
            ))}
          </ul>
        </div>
        <div className="tabular mt-1 flex justify-between pl-[76px] text-xs text-ink-3" aria-hidden>
          <span>{dayName(days[0]!.day)}</span>
          {days.length > 1 && <span>{dayName(days.at(-1)!.day)}</span>}
        </div>
        <figcaption className="mt-2 pl-[76px] max-md:pl-0">
          <ul className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-ink-2" aria-label="Parts">
            {series.map(({ key, name, total }, at) => (
              <li key={key} className="flex min-w-0 items-center gap-1.5">
                <span aria-hidden className={`size-2.5 shrink-0 rounded-[2px] border border-line-2 ${SHADES[at]}`} />
                <bdi className="truncate">{name}</bdi> <span className="tabular text-ink-3">{value(total)}</span>
              </li>
            ))}
          </ul>
        </figcaption>
      </figure>
      <details className="mt-3 text-sm">
        <summary className="w-fit cursor-pointer text-xs text-ink-2 underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:py-3">As a table</summary>
        <div className="scroll mt-2 max-h-80 rounded-md border border-line" tabIndex={0} role="region" aria-label="Cost by day, as a table">
          <table className="w-full text-sm">
            <thead className="bg-sunken text-xs text-ink-3">
              <tr>
                <th scope="col" className="px-3 py-2 text-left font-medium">Day (UTC)</th>
                <th scope="col" className="px-3 py-2 text-right font-medium">All</th>
                {series.map(({ key, name }) => (
                  <th key={key} scope="col" dir="auto" className="px-3 py-2 text-right font-medium">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody className="tabular">
              {days.toReversed().map(({ day, total, unpriced, values }) => (
                <tr key={day} className="border-t border-line">
                  <th scope="row" className="px-3 py-1.5 text-left font-normal whitespace-nowrap">{dayName(day)}</th>
                  <td className="px-3 py-1.5 text-right whitespace-nowrap">
                    {value(total)}
                    {unpriced > 0 && measure === "usd" && <span className="block text-xs text-ink-3">{plural(unpriced, "call")} without a price</span>}
                  </td>
                  {values.map((part, at) => (
                    <td key={at} className="px-3 py-1.5 text-right whitespace-nowrap text-ink-2">{part > 0 ? value(part) : "–"}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
