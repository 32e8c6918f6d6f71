/** NewTeam: the dialog that creates a team from a goal. Templates show what good goals look like. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ChevronRight, Code2, FileSearch, Newspaper, Scale } from "lucide-react";
import { type FormEvent, useId, useRef, useState } from "react";
import { api, errorMessage, nextKey, unwrap } from "@/api/client";
import type { components } from "@/api/types";
import { overviewQuery, queryKeys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { hash } from "@/lib/hash";
import { randomId } from "@/lib/randomId";
import { useStoredDraft } from "@/lib/storedDraft";
import type { Trust } from "@/lib/trust";
import { Button, Dialog, DialogActions, Input, Loading, Problem, Textarea } from "@/ui";
import { ModelField } from "@/views/models/ModelField";
import { DEMO_GOAL, demoName, refuseUnfilled, unfilled } from "@/views/home/goalText";
import { asRequested, forgetGoalFiles, GoalFiles, goalFiles, NEW_TEAM } from "@/views/composer/GoalFiles";
import { useShell } from "@/parts/shellState";
import { AcceptanceField, type Effort, EffortField, FoldersField, IntervalField, linesOf, type Mode, ModePills, type Review, ReviewField, TrustField } from "@/parts/teamFields";

type Body = components["schemas"]["NewTeam"];

const TEMPLATES = [
  { icon: Scale, name: "Compare", mode: "finite", goal: "Compare [A], [B] and [C] for [what you need them for]. Cover price, limits and what users complain about. End with a recommendation and what would change it." },
  { icon: FileSearch, name: "Research", mode: "finite", goal: "Find out [question]. Use several independent sources, say how sure you are of each finding, and write a report of two pages with links." },
  { icon: Code2, name: "Build", mode: "finite", goal: "Build [what it should do] in [language]. Write tests first, keep it small, and explain how to run it in a README." },
  { icon: Newspaper, name: "Watch", mode: "infinite", goal: "Watch [subject] and brief me when something happens that matters to [why you care]. Stay silent otherwise." },
] as const;

/** Seconds between the cycles of a team that runs until it is stopped, if the person does not choose. */
const INTERVAL = 3600;
/** Said after a request without a response. */
const MAY_EXIST = "The team may exist already: look for it in the list of teams.";

/** A text of the form that is kept until the team is created, also while the person sets up a model. With a `start` of its own, nothing is kept. */
function useTeamDraft(key: string, start: string | null): [string, (text: string) => void] {
  const stored = useStoredDraft(key);
  const own = useState(start ?? "");
  return start === null ? stored : own;
}

/** A choice of the form, kept as its texts are. The ordinary choice is an empty text. */
function useTeamChoice<T extends string | number>(key: string, start: string | null, ordinary: T): [T, (choice: T) => void] {
  const [text, setText] = useTeamDraft(key, start);
  const choice = (typeof ordinary === "number" ? Number(text) : text) as T;
  return [text === "" ? ordinary : choice, (one) => setText(one === ordinary ? "" : String(one))];
}

/** What a form of its own shows at first, as the texts of its fields. Such a form does not replace what the person has begun to write. */
type Start = Partial<Record<"goal" | "name" | "mode" | "interval" | "review" | "trust" | "model" | "effort" | "usd" | "workers" | "acceptance" | "folders", string>> & {
  /** What a copy has besides, which the form does not show. */
  besides?: Pick<Body, "permissions" | "soul" | "learns">;
};

/** Return the form of a team that is like this one. */
async function copyOf(id: string): Promise<Start> {
  const { team, budget, limits, ...settings } = await unwrap(api.GET("/api/teams/{team}/settings", { params: { path: { team: id } } }));
  const goal = budget && (await unwrap(api.GET("/api/nodes/{node}", { params: { path: { node: budget.node_id } } })));
  return {
    goal: team.goal,
    name: `${team.name} copy`,
    mode: team.mode,
    interval: String(team.interval),
    review: team.review,
    trust: team.trust,
    model: settings.model,
    effort: team.effort ?? "",
    usd: String(budget?.limits.find((one) => one.name === "usd")?.limit ?? ""),
    workers: String(limits.agents),
    acceptance: goal?.acceptance.join("\n") ?? "",
    folders: team.folders.map((folder) => (folder.access === "rw" ? `${folder.path}:rw` : folder.path)).join("\n"),
    besides: { permissions: settings.permissions, soul: settings.is_default_soul ? "" : settings.soul, learns: team.learns },
  };
}

export default function NewTeam() {
  const { startsDemo, copies, update } = useShell();
  const copied = useQuery({ queryKey: ["copied team", copies], queryFn: () => copyOf(copies), enabled: copies !== "", staleTime: Infinity, gcTime: 0 });
  if (copies !== "" && !copied.data)
    return (
      <Dialog open onOpenChange={() => update({ newTeam: false, copies: "" })} title="New team">
        {copied.isError ? <Problem of={errorMessage(copied.error)} className="text-sm" /> : <Loading label="Reading the team" />}
      </Dialog>
    );
  const demo = { goal: DEMO_GOAL, name: demoName((queryClient.getQueryData(overviewQuery.queryKey) ?? []).map((team) => team.name)), model: "demo" };
  return <Form start={copies ? copied.data! : startsDemo ? demo : null} />;
}

function Form({ start: begun }: { start: Start | null }) {
  const { startsDemo, copies, update } = useShell();
  const navigate = useNavigate();
  const start = begun && "";
  const draft = copies ? `copy.${copies}` : NEW_TEAM;
  const startOf = (field: Exclude<keyof Start, "besides">) => begun && (begun[field] ?? "");
  const [goal, setGoal] = useTeamDraft("goal", startOf("goal"));
  const [name, setName] = useTeamDraft("team.name", startOf("name"));
  const [mode, setMode] = useTeamChoice<Mode>("team.mode", startOf("mode"), "finite");
  const [interval, setRestInterval] = useTeamChoice<number>("team.interval", startOf("interval"), INTERVAL);
  const [review, setReview] = useTeamChoice<Review>("team.review", startOf("review"), "auto");
  const [trust, setTrust] = useTeamChoice<Trust>("team.trust", startOf("trust"), "standard");
  const [typedName, setTypedName] = useState("");
  const [model, setModel] = useTeamDraft("team.model", startOf("model"));
  const [effort, setEffort] = useTeamChoice<Effort | "">("team.effort", startOf("effort"), "");
  const [usd, setUsd] = useTeamDraft("team.usd", startOf("usd"));
  const [workers, setWorkers] = useTeamDraft("team.workers", startOf("workers"));
  const [acceptance, setAcceptance] = useTeamDraft("team.acceptance", startOf("acceptance"));
  const [folders, setFolders] = useTeamDraft("team.folders", startOf("folders"));
  // What is kept and applies is shown.
  const [isExpanded, setIsExpanded] = useState(workers !== "" || folders !== "" || review !== "auto" || trust !== "standard" || (mode === "infinite" && interval !== INTERVAL));
  const [problem, setProblem] = useState("");
  const [isSending, setIsSending] = useState(false);
  // The key of the last request and what it asked for, until its response comes. A request that is sent twice with the same key creates one team, also if the response to the first was lost, or the page reloaded before it came.
  const [sent, setSent] = useTeamDraft("team.sent", start);
  const id = useId();
  const goalInput = useRef<HTMLTextAreaElement>(null);

  const applyTemplate = (template: (typeof TEMPLATES)[number]) => {
    setGoal(template.goal);
    setMode(template.mode);
    // Select the first placeholder. The text field has the new text only after the next render.
    requestAnimationFrame(() => {
      const input = goalInput.current;
      const start = template.goal.indexOf("[");
      input?.focus();
      input?.setSelectionRange(start, template.goal.indexOf("]") + 1);
    });
  };
  const close = () => update({ newTeam: false, startsDemo: false, copies: "" });
  const openName = name.trim() || "open";
  const createTeam = async (event: FormEvent) => {
    event.preventDefault();
    if (!goal.trim()) return setProblem("Write a goal: what should the team do?");
    const blanks = refuseUnfilled(`${goal}\n${acceptance}`, TEMPLATES.map((template) => template.goal));
    if (blanks !== null) {
      const start = goal.indexOf(unfilled(goal, TEMPLATES.map((template) => template.goal))[0] ?? "");
      goalInput.current?.focus();
      goalInput.current?.setSelectionRange(start, goal.indexOf("]", start) + 1);
      return setProblem(blanks);
    }
    if (trust === "open" && typedName.trim() !== openName) return setProblem(`Type “${openName}” to create an open team.`);
    setIsSending(true);
    setProblem("");
    const files = startsDemo ? [] : await goalFiles(draft);
    const request: Body = {
      goal: goal.trim(),
      name: name.trim(),
      mode,
      model: model.trim(),
      effort: effort || null,
      ...(usd ? { budget: { usd: Number(usd), turns: 1000 } } : {}),
      ...(workers ? { workers: Number(workers) } : {}),
      acceptance: mode === "finite" ? linesOf(acceptance) : [],
      soul: "",
      learns: true,
      start: true,
      interval,
      review,
      trust,
      folders: linesOf(folders),
      attachments: asRequested(files),
      ...begun?.besides,
    };
    const asked = JSON.stringify({ ...request, attachments: files.map((file) => [file.name, file.media_type, hash(file.data)]) });
    if (sent !== "" && !sent.endsWith(` ${asked}`)) {
      // Its response was lost, and this one would create another team.
      setSent("");
      setIsSending(false);
      void queryClient.invalidateQueries({ queryKey: queryKeys.overview });
      return setProblem(`${MAY_EXIST} You have changed the form: to create one more team, choose “Get to work” again.`);
    }
    const key = sent ? sent.slice(0, sent.indexOf(" ")) : randomId();
    setSent(`${key} ${asked}`);
    try {
      const team = await unwrap(api.POST("/api/teams", { params: { header: { "idempotency-key": key } }, body: request }));
      forgetGoalFiles(draft, files);
      for (const forget of [setSent, setGoal, setName, setModel, setEffort, setUsd, setWorkers, setAcceptance, setFolders]) forget("");
      setMode("finite");
      setRestInterval(INTERVAL);
      setReview("auto");
      setTrust("standard");
      // The sidebar shows the new team as soon as its page opens.
      await queryClient.invalidateQueries({ queryKey: queryKeys.overview });
      close();
      if (team.coordinator_id) void navigate({ to: "/t/$team/a/$agent", params: { team: team.id, agent: team.coordinator_id } });
    } catch (error) {
      const isLost = nextKey(key, error) === key;
      if (isLost) void queryClient.invalidateQueries({ queryKey: queryKeys.overview });
      else setSent("");
      setProblem(isLost ? `${errorMessage(error)} ${MAY_EXIST} If you do not change the form, “Get to work” creates it at most once.` : errorMessage(error));
    } finally {
      setIsSending(false);
    }
  };
  const goalField = (
    <label htmlFor={`${id}g`} className="flex flex-col gap-1 text-sm font-medium">
      Goal
      <Textarea ref={goalInput} id={`${id}g`} autoFocus rows={4} value={goal} onChange={(event) => setGoal(event.target.value)} placeholder="What should be done, for whom, and how will you know it is good?" className="font-normal" />
    </label>
  );
  return (
    <Dialog open onOpenChange={() => !isSending && close()} title={copies ? "Duplicate the team" : "New team"} description={copies ? "A new team like this one. Nothing starts before you choose “Get to work”." : startsDemo ? "A scripted demo, not an AI, shows how a team works: it hires a teammate, asks you one question and delivers a file. It costs nothing." : "A coordinator takes the goal, plans it and hires the teammates it needs."}>
      <form onSubmit={(event) => void createTeam(event)} className="flex flex-col gap-4">
        {!copies && (
          <div className="grid grid-cols-4 gap-2 max-sm:grid-cols-2">
            {TEMPLATES.map((template) => (
              <button dir="auto" key={template.name} type="button" onClick={() => applyTemplate(template)} className="flex h-9 items-center gap-2 rounded-md border border-line-2 px-2.5 text-sm font-medium hover:bg-hover pointer-coarse:h-10">
                <template.icon className="size-4 text-ink-3" aria-hidden /> {template.name}
              </button>
            ))}
          </div>
        )}
        {startsDemo ? goalField : <GoalFiles draft={draft} onProblem={setProblem}>{goalField}</GoalFiles>}
        {mode === "finite" && <AcceptanceField value={acceptance} onChange={setAcceptance} />}
        <div className="grid grid-cols-[1fr_168px] items-start gap-3 text-sm font-medium max-sm:grid-cols-2">
          <label className="flex flex-col gap-1">
            Name
            <Input dir="auto" value={name} onChange={(event) => setName(event.target.value)} placeholder="Made from the goal" className="font-normal" maxLength={200} />
          </label>
          <div>
            <label className="flex flex-col gap-1">
              Budget in US dollars
              <Input type="number" inputMode="decimal" min="0" step="any" value={usd} onChange={(event) => setUsd(event.target.value)} placeholder="No limit" aria-describedby={`${id}b`} className="font-normal" />
            </label>
            <p id={`${id}b`} className="mt-1 text-xs font-normal text-ink-2">
              For this goal. What you ask for later has limits of its own.
            </p>
          </div>
          <ModelField label="Model" value={model} onChange={setModel} isOptional />
          <EffortField value={effort || null} onChange={(one) => setEffort(one ?? "")} />
        </div>
        <div className="flex flex-wrap items-center justify-between gap-2">
          <ModePills value={mode} onChange={setMode} />
          <button type="button" aria-expanded={isExpanded} onClick={() => setIsExpanded(!isExpanded)} className="flex h-8 items-center gap-1 text-sm text-ink-2">
            <ChevronRight className={cx("size-4 transition-transform", isExpanded && "rotate-90")} aria-hidden /> More
          </button>
        </div>
        {copies && <p className="text-sm text-ink-2">Its permission rules and its identity (SOUL.md) are copied, too. What it has done and learned is not.</p>}
        {isExpanded && (
          <div className="grid grid-cols-2 gap-3 text-sm font-medium max-sm:grid-cols-1">
            <label className="flex flex-col gap-1">
              Members at a time
              <Input type="number" min="1" max="200" value={workers} onChange={(event) => setWorkers(event.target.value)} placeholder="Default" className="font-normal" />
            </label>
            {mode === "infinite" && <IntervalField value={interval} onChange={setRestInterval} />}
            <ReviewField value={review} onChange={setReview} />
            <TrustField value={trust} onChange={setTrust} name={openName} typed={typedName} onType={setTypedName} />
            <FoldersField value={folders} onChange={setFolders} />
          </div>
        )}
        <DialogActions>
          {/* Beside the button, which is always in sight: on a phone the end of the form is not. */}
          <Problem of={problem} className="w-full text-sm" />
          <Button onClick={close}>Not now</Button>
          <Button variant="primary" type="submit" disabled={isSending}>
            {isSending ? "Creating the team…" : "Get to work"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
