/** TeamOptions: what else a person may choose for a new team. Everything has an ordinary value. */
import { useId } from "react";
import { AcceptanceField, EffortField, FoldersField, IntervalField, ModePills, ReviewField, TrustField } from "@/parts/teamFields";
import { Input } from "@/ui";
import type { TeamForm } from "@/views/home/teamForm";
import { ModelField } from "@/views/models/ModelField";

export default function TeamOptions({ form }: { form: TeamForm }) {
  const id = useId();
  return (
    <>
      {form.mode.value === "finite" && <AcceptanceField value={form.acceptance.value} onChange={form.acceptance.set} />}
      <div className="grid grid-cols-[1fr_168px] items-start gap-3 text-sm font-medium max-sm:grid-cols-2">
        <label className="flex flex-col gap-1">
          Name
          <Input dir="auto" value={form.name.value} onChange={(event) => form.name.set(event.target.value)} placeholder="Made from the goal" className="font-normal" maxLength={200} />
        </label>
        <div>
          <label className="flex flex-col gap-1">
            Budget in US dollars
            <Input type="number" inputMode="decimal" min="0" step="any" value={form.usd.value} onChange={(event) => form.usd.set(event.target.value)} placeholder="No limit" aria-describedby={`${id}b`} className="font-normal" />
          </label>
          <p id={`${id}b`} className="mt-1 text-xs font-normal text-ink-2">
            For this goal. What you ask for later has limits of its own.
          </p>
        </div>
        <ModelField label="Model" value={form.model.value} onChange={form.model.set} isOptional />
        <EffortField value={form.effort.value || null} onChange={(one) => form.effort.set(one ?? "")} />
      </div>
      <ModePills value={form.mode.value} onChange={form.mode.set} />
      <div className="grid grid-cols-2 gap-3 text-sm font-medium max-sm:grid-cols-1">
        <label className="flex flex-col gap-1">
          Members at a time
          <Input type="number" min="1" max="200" value={form.workers.value} onChange={(event) => form.workers.set(event.target.value)} placeholder="Default" className="font-normal" />
        </label>
        {form.mode.value === "infinite" && <IntervalField value={form.interval.value} onChange={form.interval.set} />}
        <ReviewField value={form.review.value} onChange={form.review.set} />
        <TrustField value={form.trust.value} onChange={form.trust.set} name={form.openName} typed={form.typedName.value} onType={form.typedName.set} />
        <FoldersField value={form.folders.value} onChange={form.folders.set} />
      </div>
    </>
  );
}
