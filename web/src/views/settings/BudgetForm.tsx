/** BudgetForm: changes the limits of a team's goal, whatever the goal's status. Loaded when it is opened. */
import { SectionForm } from "@/views/settings/Section";
import { useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { Input } from "@/ui";
import { changedLimits, LIMITS, totalsOf } from "@/views/settings/budgetFields";
import type { Budget } from "@/views/settings/LimitUses";

export default function BudgetForm({ team, budget, onSaved }: { team: string; budget: Budget; onSaved?: () => void }) {
  const save = useSave(team, budget.waits ? "The limits are saved. What waited for them goes on." : "The limits are saved.");
  const form = useEdits(totalsOf(budget), `budget.${team}`);
  const limits = changedLimits(form.changes);
  const saved = () => {
    form.forget();
    onSaved?.();
  };
  return (
    <SectionForm save={save} isChanged={limits !== null} edits={form} onSave={() => save.mutate({ budget: limits }, { onSuccess: saved })} label="Save the limits">
      <div className="grid grid-cols-4 gap-3 max-sm:grid-cols-2">
        {LIMITS.map(({ name, label, step }) => (
          <label key={name} className="flex flex-col gap-1">
            {label} in total
            <Input type="number" min="0" step={step} inputMode="decimal" value={form.values[name]} onChange={(event) => form.set({ [name]: event.target.value })} placeholder="no limit" className="font-normal" />
          </label>
        ))}
      </div>
    </SectionForm>
  );
}
