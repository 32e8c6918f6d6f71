/** NewTeam: the field that creates a team from a goal, and what else a person may choose for it. Templates show what good goals look like. */
import { useNavigate } from "@tanstack/react-router";
import { ArrowUp, ChevronRight, Code2, FileSearch, Newspaper, Scale } from "lucide-react";
import { type FormEvent, type KeyboardEvent, Suspense, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { api, errorMessage, nextKey, unwrap } from "@/api/client";
import { queryKeys, queryClient } from "@/api/queries";
import { isComposing } from "@/lib/composing";
import { cx } from "@/lib/cx";
import { hash } from "@/lib/hash";
import { randomId } from "@/lib/randomId";
import { lazyChunk } from "@/live/chunks";
import { Button, Kbd, Loading, Problem } from "@/ui";
import { ModelNotice } from "@/views/models/NoticeText";
import { refuseUnfilled, unfilled } from "@/views/home/goalText";
import { asRequested, forgetGoalFiles, GoalFiles, goalFiles } from "@/views/composer/GoalFiles";
import { type Body, type Start, useTeamForm } from "@/views/home/teamForm";

const TeamOptions = lazyChunk(() => import("@/views/home/TeamOptions"));

const TEMPLATES = [
  { icon: Scale, name: "Compare", mode: "finite", goal: "Compare [A], [B] and [C] for [what you need them for]. Cover price, limits and what users complain about. End with a recommendation and what would change it." },
  { icon: FileSearch, name: "Research", mode: "finite", goal: "Find out [question]. Use several independent sources, say how sure you are of each finding, and write a report of two pages with links." },
  { icon: Code2, name: "Build", mode: "finite", goal: "Build [what it should do] in [language]. Write tests first, keep it small, and explain how to run it in a README." },
  { icon: Newspaper, name: "Watch", mode: "infinite", goal: "Watch [subject] and brief me when something happens that matters to [why you care]. Stay silent otherwise." },
] as const;

const isTouch = (): boolean => matchMedia("(pointer: coarse)").matches;
/** Said after a request without a response. */
const MAY_EXIST = "The team may exist already: look for it in the list of teams.";

interface Props {
  /** What the form begins with; null: what the person has begun to write. */
  begun: Start | null;
  /** How often the person has asked for the field, which then takes the focus. */
  asked: number;
  /** Back to what the person has begun to write. */
  onLeave: () => void;
}

const MOST_PX = 320;
const BEGUN_TEXTS: Record<Start["of"], string> = {
  demo: "A scripted demo, not an AI, shows how a team works: it hires a teammate, asks you one question and delivers a file. It takes a minute and costs nothing.",
  copy: "A new team like the one you copy, with its permission rules and its character, but without what that one has done and learned. Nothing starts before you choose “Get to work”.",
};

export function NewTeam({ begun, asked, onLeave }: Props) {
  const navigate = useNavigate();
  const form = useTeamForm(begun);
  const { files: draft } = form;
  const { value: goal, set: setGoal } = form.goal;
  const { value: sent, set: setSent } = form.sent;
  // What is kept and applies is shown.
  const [isExpanded, setIsExpanded] = useState(begun?.of !== "demo" && form.hasOptions);
  const [problem, setProblem] = useState("");
  const [isSending, setIsSending] = useState(false);
  const id = useId();
  const goalInput = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // On a touch screen the keyboard would cover the page: it comes when it is asked for.
    if (asked > 0 || !isTouch()) goalInput.current?.focus();
  }, [asked]);
  useLayoutEffect(() => {
    const element = goalInput.current;
    if (!element) return;
    // Reset the height first: scrollHeight is never less than the current height.
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, MOST_PX)}px`;
  }, [goal]);

  const applyTemplate = (template: (typeof TEMPLATES)[number]) => {
    setGoal(template.goal);
    form.mode.set(template.mode);
    // Select the first placeholder. The text field has the new text only after the next render.
    requestAnimationFrame(() => {
      const input = goalInput.current;
      const start = template.goal.indexOf("[");
      input?.focus();
      input?.setSelectionRange(start, template.goal.indexOf("]") + 1);
    });
  };
  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (isComposing(event.nativeEvent)) return;
    // On touch keyboards Enter is a new line.
    if (event.key === "Enter" && !event.shiftKey && (!isTouch() || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.currentTarget.form?.requestSubmit();
    }
    // Outside of the field, letters are shortcuts.
    if (event.key === "Escape") document.getElementById("main")?.focus({ preventScroll: true });
  };
  const createTeam = async (event: FormEvent) => {
    event.preventDefault();
    if (isSending) return;
    if (!goal.trim()) return setProblem("Write a goal: what should the team do?");
    const blanks = refuseUnfilled(`${goal}\n${form.acceptance.value}`, TEMPLATES.map((template) => template.goal));
    if (blanks !== null) {
      const start = goal.indexOf(unfilled(goal, TEMPLATES.map((template) => template.goal))[0] ?? "");
      goalInput.current?.focus();
      goalInput.current?.setSelectionRange(start, goal.indexOf("]", start) + 1);
      return setProblem(blanks);
    }
    if (form.trust.value === "open" && form.typedName.value.trim() !== form.openName) return setProblem(`Type “${form.openName}” to create an open team.`);
    setIsSending(true);
    setProblem("");
    const files = draft ? await goalFiles(draft) : [];
    const request: Body = { ...form.request(), goal: goal.trim(), attachments: asRequested(files) };
    const described = JSON.stringify({ ...request, attachments: files.map((file) => [file.name, file.media_type, hash(file.data)]) });
    if (sent !== "" && !sent.endsWith(` ${described}`)) {
      // Its response was lost, and this one would create another team.
      setSent("");
      setIsSending(false);
      void queryClient.invalidateQueries({ queryKey: queryKeys.overview });
      return setProblem(`${MAY_EXIST} You have changed the form: to create one more team, choose “Get to work” again.`);
    }
    const key = sent ? sent.slice(0, sent.indexOf(" ")) : randomId();
    setSent(`${key} ${described}`);
    try {
      const team = await unwrap(api.POST("/api/teams", { params: { header: { "idempotency-key": key } }, body: request }));
      if (draft) forgetGoalFiles(draft, files);
      form.forget();
      // The sidebar shows the new team as soon as its page opens.
      await queryClient.invalidateQueries({ queryKey: queryKeys.overview });
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
  const field = (
    <textarea
      ref={goalInput}
      id="goal"
      dir="auto"
      rows={3}
      value={goal}
      onChange={(event) => setGoal(event.target.value)}
      onKeyDown={onKey}
      placeholder="What should be done, for whom, and how will you know it is good?"
      className="scroll block w-full resize-none bg-transparent px-4 pt-3.5 text-lg leading-7 outline-none placeholder:text-ink-3"
    />
  );
  const box = "rounded-lg border border-control bg-surface shadow-low focus-within:border-ink";
  const actions = (
    <>
      {begun && (
        <Button variant="ghost" onClick={onLeave}>
          Write a goal of your own
        </Button>
      )}
      <button type="button" aria-expanded={isExpanded} aria-controls={`${id}o`} onClick={() => setIsExpanded(!isExpanded)} className="flex h-8 items-center gap-1 rounded-sm px-2 text-sm text-ink-2 hover:bg-hover pointer-coarse:h-11">
        <ChevronRight className={cx("size-4 transition-transform", isExpanded && "rotate-90")} aria-hidden /> Options
      </button>
      <Button variant="primary" type="submit" disabled={isSending} className="pointer-coarse:h-11">
        {isSending ? "Creating the team…" : "Get to work"} <ArrowUp className="size-4" aria-hidden />
      </Button>
    </>
  );
  return (
    <form onSubmit={(event) => void createTeam(event)} aria-label="New team" className="flex flex-col gap-3">
      <h2 className="text-center text-xl font-semibold tracking-tight max-md:text-lg">
        <label htmlFor="goal">What should a team do?</label>
      </h2>
      {begun && <p className="text-center text-sm text-ink-2">{BEGUN_TEXTS[begun.of]}</p>}
      {draft ? (
        <GoalFiles draft={draft} onProblem={setProblem} actions={actions} className={box}>
          {field}
        </GoalFiles>
      ) : (
        <div className={box}>
          {field}
          <div className="flex flex-wrap items-center justify-end gap-2 p-2">{actions}</div>
        </div>
      )}
      <Problem of={problem} className="text-sm" />
      {!begun && (
        <div className="flex flex-wrap items-center justify-center gap-2">
          {TEMPLATES.map((template) => (
            <button dir="auto" key={template.name} type="button" onClick={() => applyTemplate(template)} className="flex h-8 items-center gap-2 rounded-full border border-line-2 px-3 text-sm hover:bg-hover pointer-coarse:h-11">
              <template.icon className="size-4 text-ink-3 max-sm:hidden" aria-hidden /> {template.name}
            </button>
          ))}
          <span className="ml-auto flex items-center gap-1.5 text-2xs text-ink-3 max-md:hidden pointer-coarse:hidden">
            <Kbd>⏎</Kbd> start <Kbd className="ml-2">⇧ ⏎</Kbd> new line
          </span>
        </div>
      )}
      {!isExpanded && form.mode.value === "infinite" && <p className="text-center text-xs text-ink-2">It runs until you stop it, and starts a cycle by itself: see Options.</p>}
      {!isExpanded && <ModelNotice chosen={form.model.value} className="text-center" />}
      {isExpanded && (
        <div id={`${id}o`} role="group" aria-label="Options" className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-4">
          <Suspense fallback={<Loading label="Loading the options" className="p-0" />}>
            <TeamOptions form={form} />
          </Suspense>
        </div>
      )}
    </form>
  );
}
