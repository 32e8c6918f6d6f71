/** Acts: what a reply did besides its words, in the runtime's words under it. Each line can be undone, and most can be changed. */
import { AlarmClock, Ban, Brain, CalendarClock, CirclePlay, CornerDownRight, Eraser, type LucideIcon, MessageCircleReply } from "lucide-react";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { cx } from "@/lib/cx";
import { Button, Input } from "@/ui";
import { ACTS_HINT } from "@/views/composer/Composer";
import { useComposer } from "@/views/composer/composerState";
import { Literal } from "@/reading/Literal";

type Act = Schemas["ActView"];

const ICONS: Record<Act["kind"], LucideIcon> = {
  told: CornerDownRight,
  started: CirclePlay,
  stopped: Ban,
  answered: MessageCircleReply,
  reminder: AlarmClock,
  trigger: CalendarClock,
  remembered: Brain,
  forgot: Eraser,
};
/** How each kind is changed: with other words at once, or by a message that the person edits. */
const CHANGES: Partial<Record<Act["kind"], "here" | "composer">> = {
  told: "composer",
  started: "composer",
  answered: "here",
  reminder: "composer",
  trigger: "composer",
  remembered: "here",
};

/** The words of changes that are being written, by message and place: a line that is scrolled out of view leaves the page. */
const begun = new Map<string, string>();

const undo = (message: string, place: number) => unwrap(api.POST("/api/messages/{message}/acts/{place}/undo", { params: { path: { message, place } } }));

export function Acts({ message, acts, agentId }: { message: string; acts: readonly Act[]; agentId: string }) {
  return (
    <ul aria-label="What this reply did" title={ACTS_HINT} className="mt-1.5 border-l-2 border-line pl-2.5 text-xs text-ink-3">
      {acts.map((act, place) => (
        <ActLine key={place} act={act} message={message} place={place} agentId={agentId} />
      ))}
    </ul>
  );
}

function ActLine({ act, message, place, agentId }: { act: Act; message: string; place: number; agentId: string }) {
  const [isBusy, setIsBusy] = useState(false);
  const key = `${message} ${place}`;
  const [isEditing, setIsEditing] = useState(begun.has(key));
  const [problem, setProblem] = useState("");
  const line = useRef<HTMLLIElement>(null);
  const textId = useId();
  const Icon = ICONS[act.kind];
  // An insight has a kind of its own, which a message can say.
  const how = act.kind === "remembered" && !act.about.startsWith("memory_") ? "composer" : CHANGES[act.kind];
  /** Do something after the act is undone; what cannot be undone is said instead. */
  const undoAnd = async (then?: () => unknown): Promise<boolean> => {
    setIsBusy(true);
    setProblem("");
    try {
      await undo(message, place);
      await then?.();
      return true;
    } catch (error) {
      setProblem(errorMessage(error));
      return false;
    } finally {
      setIsBusy(false);
      void queryClient.invalidateQueries({ queryKey: ["conversation"] });
      void queryClient.invalidateQueries({ queryKey: queryKeys.inbox });
    }
  };
  // The button with the focus goes away: the line that says so takes it.
  const undoOnly = () => void undoAnd().then((isDone) => isDone && line.current?.focus({ preventScroll: true }));
  const write = (words: string) => begun.set(key, words);
  const leave = () => {
    begun.delete(key);
    setIsEditing(false);
  };
  const change = () => (how === "here" ? setIsEditing(true) : void undoAnd(() => useComposer.getState().putBefore(agentId, act.words)));
  const save = async (words: string) => {
    if (!(await undoAnd(() => replaced(act, agentId, words)))) return;
    leave();
    line.current?.focus({ preventScroll: true });
  };
  return (
    <li ref={line} tabIndex={-1} data-act={act.kind} className="py-0.5 outline-none">
      <div className="flex gap-1.5">
        <Icon className="mt-[5px] size-3.5 shrink-0" aria-hidden />
        <div className="flex min-h-6 min-w-0 flex-wrap items-center gap-x-2">
          <span id={textId} dir="auto" className={cx("literal min-w-0 max-w-full", act.is_undone && "line-through")}>
            <Literal text={act.text} keepEmoji />
          </span>
          {act.is_undone && <span className="font-medium">undone</span>}
          {!act.is_undone && !isEditing && (
            <span className="-ml-1.5 flex">
              <Button variant="ghost" size="sm" className={SMALL} disabled={isBusy} aria-describedby={textId} onClick={undoOnly}>
                Undo
              </Button>
              {how && (
                <Button variant="ghost" size="sm" className={SMALL} disabled={isBusy} aria-describedby={textId} onClick={change}>
                  Change
                </Button>
              )}
            </span>
          )}
        </div>
      </div>
      {isEditing && !act.is_undone && <Editor act={act} begun={begun.get(key)} isBusy={isBusy} onWrite={write} onSave={(words) => void save(words)} onCancel={leave} />}
      {problem && (
        <p role="alert" dir="auto" className="text-fail">
          {problem}
        </p>
      )}
    </li>
  );
}

const SMALL = "h-6 px-1.5 underline decoration-line-2 underline-offset-2";

function Editor({ act, begun, isBusy, onWrite, onSave, onCancel }: { act: Act; begun?: string; isBusy: boolean; onWrite: (words: string) => void; onSave: (words: string) => void; onCancel: () => void }) {
  const [words, setWords] = useState(begun ?? act.words);
  useEffect(() => void onWrite(words), [words]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (words.trim()) onSave(words.trim());
  };
  return (
    <form onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && (event.stopPropagation(), onCancel())} className="my-1 flex max-w-[640px] flex-wrap gap-2">
      <Input autoFocus={begun === undefined} value={words} dir="auto" aria-label={act.kind === "answered" ? "Another answer" : "What to remember instead"} onChange={(event) => setWords(event.target.value)} className="min-w-0 flex-1 basis-60" />
      <Button type="submit" variant="primary" className="h-9" disabled={isBusy || !words.trim() || words.trim() === act.words.trim()}>
        Save
      </Button>
      <Button variant="ghost" className="h-9" onClick={onCancel}>
        Cancel
      </Button>
    </form>
  );
}

/** Do again, with other words, what was just undone. */
function replaced(act: Act, agent: string, words: string): Promise<unknown> {
  if (act.kind === "answered") return unwrap(api.POST("/api/inbox/{item}/answer", { params: { path: { item: act.about } }, body: { text: words, note: "", always: false } }));
  return unwrap(api.POST("/api/agents/{agent}/memories", { params: { path: { agent } }, body: { content: words } }));
}
