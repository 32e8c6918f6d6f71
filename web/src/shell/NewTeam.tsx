/** NewTeam: a goal and, for those who want, the rest. Templates show what goals look like. */
import { useNavigate } from "@tanstack/react-router";
import { ChevronRight, Code2, FileSearch, Newspaper, Scale } from "lucide-react";
import { type FormEvent, useId, useRef, useState } from "react";
import { api, explain, unwrap } from "@/api/client";
import { keys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { fresh } from "@/lib/randomId";
import { Button, Dialog, Input, Pills, Textarea } from "@/ui";
import { useShell } from "@/shell/state";

const TEMPLATES = [
  { icon: Scale, name: "Compare", mode: "finite", goal: "Compare [A], [B] and [C] for [what you need them for]. Cover price, limits and what users complain about. End with a recommendation and what would change it." },
  { icon: FileSearch, name: "Research", mode: "finite", goal: "Find out [question]. Use several independent sources, say how sure you are of each finding, and write a report of two pages with links." },
  { icon: Code2, name: "Build", mode: "finite", goal: "Build [what it should do] in [language]. Write tests first, keep it small, and explain how to run it in a README." },
  { icon: Newspaper, name: "Watch", mode: "infinite", goal: "Watch [subject] and brief me when something happens that matters to [why you care]. Stay silent otherwise." },
] as const;

export default function NewTeam() {
  const open = useShell((state) => state.open);
  const navigate = useNavigate();
  const [goal, setGoal] = useState("");
  const [name, setName] = useState("");
  const [mode, setMode] = useState<"finite" | "infinite">("finite");
  const [model, setModel] = useState("");
  const [usd, setUsd] = useState("");
  const [workers, setWorkers] = useState("");
  const [more, setMore] = useState(false);
  const [trouble, setTrouble] = useState("");
  const [isSending, setIsSending] = useState(false);
  const once = useRef(fresh());
  const id = useId();
  const box = useRef<HTMLTextAreaElement>(null);

  const take = (template: (typeof TEMPLATES)[number]) => {
    setGoal(template.goal);
    setMode(template.mode);
    requestAnimationFrame(() => {
      const area = box.current;
      const start = template.goal.indexOf("[");
      area?.focus();
      area?.setSelectionRange(start, template.goal.indexOf("]") + 1);
    });
  };
  const found = async (event: FormEvent) => {
    event.preventDefault();
    if (!goal.trim()) return setTrouble("Write a goal: what should the team do?");
    setIsSending(true);
    setTrouble("");
    try {
      const team = await unwrap(
        api.POST("/api/teams", {
          params: { header: { "idempotency-key": once.current } },
          body: {
            goal: goal.trim(),
            name: name.trim(),
            mode,
            model: model.trim(),
            ...(usd ? { budget: { usd: Number(usd), turns: 1000 } } : {}),
            ...(workers ? { workers: Number(workers) } : {}),
            soul: "",
            learns: true,
            start: true,
          },
        }),
      );
      await queryClient.invalidateQueries({ queryKey: keys.teams });
      open("newTeam", false);
      if (team.coordinator_id) void navigate({ to: "/t/$team/a/$agent", params: { team: team.id, agent: team.coordinator_id } });
    } catch (error) {
      once.current = fresh();
      setTrouble(explain(error));
    } finally {
      setIsSending(false);
    }
  };
  return (
    <Dialog open onOpenChange={(now) => open("newTeam", now)} title="New team" description="A coordinator takes the goal, plans it and hires the teammates it needs.">
      <form onSubmit={(event) => void found(event)} className="flex flex-col gap-4">
        <div className="grid grid-cols-4 gap-2 max-sm:grid-cols-2">
          {TEMPLATES.map((template) => (
            <button key={template.name} type="button" onClick={() => take(template)} className="flex flex-col items-start gap-1 rounded-md border border-line-2 p-2.5 text-sm font-medium hover:bg-hover">
              <template.icon className="size-4 text-ink-3" aria-hidden /> {template.name}
            </button>
          ))}
        </div>
        <label htmlFor={`${id}g`} className="flex flex-col gap-1 text-sm font-medium">
          Goal
          <Textarea ref={box} id={`${id}g`} autoFocus rows={5} value={goal} onChange={(event) => setGoal(event.target.value)} placeholder="What should be done, for whom, and how will you know it is good?" className="font-normal" />
        </label>
        <div className="flex flex-wrap items-center justify-between gap-2">
          <Pills
            label="How long"
            value={mode}
            onChange={setMode}
            options={[
              ["finite", "Ends with a result"],
              ["infinite", "Works without an end"],
            ]}
          />
          <button type="button" aria-expanded={more} onClick={() => setMore(!more)} className="flex h-8 items-center gap-1 text-sm text-ink-2">
            <ChevronRight className={cx("size-4 transition-transform", more && "rotate-90")} aria-hidden /> More
          </button>
        </div>
        {more && (
          <div className="grid grid-cols-2 gap-3 text-sm font-medium max-sm:grid-cols-1">
            <label className="flex flex-col gap-1">
              Name
              <Input value={name} onChange={(event) => setName(event.target.value)} placeholder="Made from the goal" className="font-normal" maxLength={200} />
            </label>
            <label className="flex flex-col gap-1">
              Model
              <Input value={model} onChange={(event) => setModel(event.target.value)} placeholder="The server's" className="font-normal" />
            </label>
            <label className="flex flex-col gap-1">
              Budget in US dollars
              <Input type="number" min="0" step="0.1" value={usd} onChange={(event) => setUsd(event.target.value)} placeholder="No limit" className="font-normal" />
            </label>
            <label className="flex flex-col gap-1">
              Members at a time
              <Input type="number" min="1" max="200" value={workers} onChange={(event) => setWorkers(event.target.value)} placeholder="Default" className="font-normal" />
            </label>
          </div>
        )}
        {trouble && (
          <p role="alert" className="text-sm text-fail">
            {trouble}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={() => open("newTeam", false)}>Not now</Button>
          <Button look="ink" type="submit" disabled={isSending}>
            {isSending ? "Creating the team…" : "Get to work"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
