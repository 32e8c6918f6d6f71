/** General: the team's name, how long it works, its goal and its soul. */
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, unwrap } from "@/api/client";
import { randomId } from "@/lib/randomId";
import { Fields, Section, SectionForm } from "@/settings/Section";
import { refreshTeam, type TeamChanges, type TeamSettings, useSave } from "@/settings/settingsQuery";
import { AcceptanceField, type Effort, EffortField, IntervalField, linesOf, type Mode, ModePills, type Review, ReviewField } from "@/shell/teamFields";
import { Input, Textarea } from "@/ui";
import { showToast } from "@/views/shared/toast";

const MODE_NOTES: Record<Mode, string> = {
  finite: "When the goal is reached, the team rests. It still answers you and takes new work.",
  infinite: "The coordinator works in cycles and looks for the next useful step by itself.",
};

export function General({ settings: { team } }: { settings: TeamSettings }) {
  const save = useSave(team.id, "Saved. It applies from the team's next step on.");
  const [name, setName] = useState(team.name);
  const [mode, setMode] = useState<Mode>(team.mode);
  const [interval, setRestInterval] = useState(team.interval);
  const [effort, setEffort] = useState<Effort | null>(team.effort);
  const [review, setReview] = useState<Review>(team.review);
  const changes: TeamChanges = {
    ...(name.trim() !== team.name ? { name: name.trim() } : {}),
    ...(mode !== team.mode ? { mode } : {}),
    ...(interval !== team.interval ? { interval } : {}),
    ...(review !== team.review ? { review } : {}),
    ...(effort !== team.effort ? { effort: effort ?? ("default" as const) } : {}),
  };
  return (
    <Section id="general" title="General">
      <SectionForm save={save} isChanged={Object.keys(changes).length > 0} onSave={() => save.mutate(changes)}>
        <label className="flex flex-col gap-1">
          Name
          <Input value={name} onChange={(event) => setName(event.target.value)} placeholder="Made from the goal" className="font-normal" maxLength={200} dir="auto" />
        </label>
        <div className="flex flex-col gap-2">
          <ModePills value={mode} onChange={setMode} />
          <p className="font-normal text-ink-2">{MODE_NOTES[mode]}</p>
        </div>
        <Fields>
          <IntervalField value={interval} onChange={setRestInterval} />
          <ReviewField value={review} onChange={setReview} />
          <EffortField value={effort} onChange={setEffort} />
        </Fields>
      </SectionForm>
    </Section>
  );
}

export function Goal({ settings: { team } }: { settings: TeamSettings }) {
  const [goal, setGoal] = useState("");
  const [acceptance, setAcceptance] = useState("");
  // A goal that is sent twice with the same key is set once. After an error the next try is a new request.
  const idempotencyKey = useRef(randomId());
  const aim = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/teams/{team}/goal", { params: { path: { team: team.id }, header: { "idempotency-key": idempotencyKey.current } }, body: { goal: goal.trim(), acceptance: team.mode === "finite" ? linesOf(acceptance) : [] } })),
    onSuccess: async () => {
      setGoal("");
      setAcceptance("");
      await refreshTeam(team.id);
      showToast("The team has a new goal.");
    },
    onSettled: () => {
      idempotencyKey.current = randomId();
    },
  });
  return (
    <Section id="goal" title="Goal" about="A new goal starts a new run. Open work on the old goal is cancelled; what the team knows stays.">
      <div>
        <h3 className="font-medium">Now</h3>
        <p dir="auto" className="scroll mt-1 max-h-48 rounded-sm bg-sunken px-3 py-2 break-words whitespace-pre-wrap" tabIndex={0}>
          {team.goal}
        </p>
      </div>
      <SectionForm save={aim} isChanged={goal.trim() !== ""} onSave={() => aim.mutate()} label="Start with this goal">
        <label className="flex flex-col gap-1">
          New goal
          <Textarea rows={3} value={goal} onChange={(event) => setGoal(event.target.value)} className="font-normal" dir="auto" />
        </label>
        {team.mode === "finite" && goal.trim() && <AcceptanceField value={acceptance} onChange={setAcceptance} />}
      </SectionForm>
    </Section>
  );
}

export function Soul({ settings }: { settings: TeamSettings }) {
  const { team } = settings;
  const save = useSave(team.id, "Saved. New tasks begin with it.");
  const [soul, setSoul] = useState(settings.soul);
  return (
    <Section id="soul" title="Soul" about="The team's character and rules, in its file SOUL.md. Every member reads its beginning before it starts a task. Empty: agiraph's own.">
      <SectionForm save={save} isChanged={soul.trim() !== settings.soul} onSave={() => save.mutate({ soul: soul.trim() })}>
        <Textarea aria-label="Soul" rows={8} value={soul} onChange={(event) => setSoul(event.target.value)} className="font-normal" dir="auto" maxLength={100_000} />
        {settings.is_default_soul && soul === settings.soul && <p className="text-xs font-normal text-ink-3">This is the soul that every team gets.</p>}
      </SectionForm>
    </Section>
  );
}
