/** General: the team's name, how long it works, its goal and its character. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { api, nextKey, unwrap } from "@/api/client";
import { randomId } from "@/lib/randomId";
import { linesOf } from "@/lib/format";
import { useStoredDraft } from "@/lib/storedDraft";
import { Fields, Section, SectionForm } from "@/views/settings/Section";
import { refreshTeam, type TeamSettings, useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { asRequested, forgetGoalFiles, GoalFiles, goalFiles } from "@/views/composer/GoalFiles";
import { AcceptanceField, EffortField, IntervalField, type Mode, ModePills, ReviewField } from "@/parts/teamFields";
import { Input, Problem, Textarea } from "@/ui";
import { screenHref } from "@/lib/screens";
import { otherLimits, totalsOf } from "@/views/settings/budgetFields";
import { showToast } from "@/parts/toast";

const MODE_NOTES: Record<Mode, string> = {
  finite: "When the goal is reached, the team rests. It still answers you and takes new work.",
  infinite: "The coordinator works in cycles and looks for the next useful step by itself.",
};

const trimmed = <T extends { name: string }>(values: T): T => ({ ...values, name: values.name.trim() });
const trimmedSoul = ({ soul }: { soul: string }) => ({ soul: soul.trim() });

export function General({ settings: { team } }: { settings: TeamSettings }) {
  const save = useSave(team.id, "Saved. It applies from the team's next step on.");
  const form = useEdits({ name: team.name, mode: team.mode, interval: team.interval, review: team.review, effort: team.effort ?? ("default" as const) }, `general.${team.id}`, trimmed);
  const { name, mode, interval, review, effort } = form.values;
  return (
    <Section id="general" title="General">
      <SectionForm save={save} isChanged={form.isChanged} edits={form} onSave={() => save.mutate(form.changes, { onSuccess: form.forget })}>
        <label className="flex flex-col gap-1">
          Name
          <Input value={name} onChange={(event) => form.set({ name: event.target.value })} placeholder="Made from the goal" className="font-normal" maxLength={200} dir="auto" />
        </label>
        <div className="flex flex-col gap-2">
          <ModePills value={mode} onChange={(mode) => form.set({ mode })} />
          <p className="font-normal text-ink-2">{MODE_NOTES[mode]}</p>
        </div>
        <Fields>
          {mode === "infinite" && <IntervalField value={interval} onChange={(interval) => form.set({ interval })} />}
          <ReviewField value={review} onChange={(review) => form.set({ review })} />
          <EffortField value={effort === "default" ? null : effort} onChange={(effort) => form.set({ effort: effort ?? "default" })} />
        </Fields>
      </SectionForm>
    </Section>
  );
}

export function Goal({ settings: { team, budget } }: { settings: TeamSettings }) {
  const [goal, setGoal] = useStoredDraft(`goal.${team.id}`);
  const [acceptance, setAcceptance] = useStoredDraft(`acceptance.${team.id}`);
  const filesDraft = `goal.${team.id}`;
  const [fileProblem, setFileProblem] = useState("");
  const last = budget ? totalsOf(budget).usd : "";
  const limit = useEdits({ usd: last }, `limit.${team.id}`);
  const { usd } = limit.changes; // undefined: as for the last goal
  const others = budget ? otherLimits(budget) : "";
  // A goal that is sent twice with the same key is set once, also if the response to the first was lost.
  const idempotencyKey = useRef(randomId());
  const aim = useMutation({
    mutationFn: async () => {
      const files = await goalFiles(filesDraft);
      const body = { goal: goal.trim(), acceptance: team.mode === "finite" ? linesOf(acceptance) : [], attachments: asRequested(files), ...(usd === undefined ? {} : { budget: { usd: usd ? Number(usd) : null } }) };
      await unwrap(api.POST("/api/teams/{team}/goal", { params: { path: { team: team.id }, header: { "idempotency-key": idempotencyKey.current } }, body }));
      return files;
    },
    onSuccess: async (files) => {
      setGoal("");
      forgetGoalFiles(filesDraft, files);
      setFileProblem("");
      limit.forget();
      setAcceptance("");
      await refreshTeam(team.id);
      showToast("The team has a new goal.");
    },
    onSettled: (_, error) => {
      idempotencyKey.current = nextKey(idempotencyKey.current, error);
    },
  });
  return (
    <Section id="goal" title="Goal" about="A new goal starts a new run. Open work on the old goal is cancelled; what the team knows stays.">
      <div>
        <h3 className="font-medium">Now</h3>
        <p dir="auto" className="scroll mt-1 max-h-48 rounded-sm bg-sunken px-3 py-2 break-words whitespace-pre-wrap" tabIndex={0}>
          {team.goal}
        </p>
        <HistoryLink team={team.id} file="GOAL.md" />
      </div>
      <SectionForm save={aim} isChanged={goal.trim() !== ""} onSave={() => aim.mutate()} label="Start with this goal">
        <GoalFiles draft={filesDraft} onProblem={setFileProblem}>
          <label className="flex flex-col gap-1">
            New goal
            <Textarea rows={3} value={goal} onChange={(event) => setGoal(event.target.value)} className="font-normal" dir="auto" />
          </label>
        </GoalFiles>
        <Problem of={fileProblem} className="font-normal" />
        {team.mode === "finite" && goal.trim() && <AcceptanceField value={acceptance} onChange={setAcceptance} />}
        <div>
          <label className="flex flex-col gap-1">
            Limit for this goal in US dollars
            <Input type="number" inputMode="decimal" min="0" step="any" value={limit.values.usd} onChange={(event) => limit.set({ usd: event.target.value })} placeholder="No limit" className="max-w-44 font-normal" />
          </label>
          {others && <p className="mt-1 font-normal text-ink-2">Its other limits are as for the last goal, counted from zero: {others}.</p>}
        </div>
      </SectionForm>
    </Section>
  );
}

export function Soul({ settings }: { settings: TeamSettings }) {
  const { team } = settings;
  const save = useSave(team.id, "Saved. New tasks begin with it.");
  const form = useEdits({ soul: settings.soul }, `soul.${team.id}`, trimmedSoul);
  const { soul } = form.values;
  return (
    <Section id="soul" title="Character" about="The team's character and rules, in its file SOUL.md. Every member reads its beginning before it starts a task. Empty: agiraph's own.">
      <SectionForm save={save} isChanged={form.isChanged} edits={form} onSave={() => save.mutate(form.changes, { onSuccess: form.forget })}>
        <Textarea aria-label="Character" rows={8} value={soul} onChange={(event) => form.set({ soul: event.target.value })} className="font-normal" dir="auto" />
        <HistoryLink team={team.id} file="SOUL.md" />
        {settings.is_default_soul && soul === settings.soul && <p className="text-xs font-normal text-ink-3">This is the character that every team gets.</p>}
      </SectionForm>
    </Section>
  );
}

function HistoryLink({ team, file }: { team: string; file: string }) {
  return (
    <Link to={screenHref(team, "files", file, "?view=history") as "/"} className="inline-flex min-h-6 items-center self-start text-xs font-normal text-ink-2 underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11">
      History of {file}
    </Link>
  );
}
