/** Budget: what the goal has used of its limits, and a form that raises them while the team works. */
import { useState } from "react";
import { Link } from "@tanstack/react-router";
import { LIMITS, limitText, LimitUses } from "@/views/cost/LimitUses";
import { Section, SectionForm } from "@/settings/Section";
import { type TeamSettings, useSave } from "@/settings/settingsQuery";
import { Input } from "@/ui";
import { screenHref } from "@/views";

type Name = (typeof LIMITS)[number]["name"];

export function Budget({ settings: { team, budget } }: { settings: TeamSettings }) {
  const save = useSave(team.id, "The limits are raised.");
  const [totals, setTotals] = useState<Partial<Record<Name, string>>>({});
  const raised = Object.fromEntries(LIMITS.flatMap(({ name, factor }) => (totals[name] ? [[name, Number(totals[name]) * factor]] : [])));
  const isValid = Object.values(raised).length > 0 && Object.values(raised).every((total) => total > 0);
  const cost = screenHref(team.id, "cost");
  return (
    <Section
      id="budget"
      title="Budget"
      about={
        <>
          The limits of the goal, with everything that was delegated for it. Limits can be raised, not lowered.{" "}
          {cost && (
            <Link to={cost as "/"} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              What it was spent on
            </Link>
          )}
        </>
      }
    >
      {budget ? (
        <>
          <LimitUses budget={budget} />
          {budget.can_raise ? (
            <SectionForm
              save={save}
              isChanged={isValid}
              onSave={() => save.mutate({ budget: raised }, { onSuccess: () => setTotals({}) })}
              label="Raise the limits"
            >
              <div className="grid grid-cols-4 gap-3 max-sm:grid-cols-2">
                {LIMITS.map(({ name, label, step, factor }) => {
                  const limit = budget.limits.find((use) => use.name === name)?.limit ?? null;
                  return (
                    <label key={name} className="flex flex-col gap-1">
                      {label} in total
                      <Input type="number" min="0" step={step} inputMode="decimal" value={totals[name] ?? ""} onChange={(event) => setTotals({ ...totals, [name]: event.target.value })} placeholder={limit === null ? "no limit" : limitText(name, limit, factor)} className="font-normal" />
                    </label>
                  );
                })}
              </div>
            </SectionForm>
          ) : (
            <p className="text-ink-2">{budget.problem}</p>
          )}
        </>
      ) : (
        <p className="text-ink-2">The team has no goal yet. Its budget is given with the goal.</p>
      )}
    </Section>
  );
}
