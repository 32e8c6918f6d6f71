/** StepList: a virtualized list of a thread's steps. Expanded steps stay expanded while they are scrolled away. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { Bot, Brain, ChevronRight, CircleAlert, MessageSquare, PenLine, Settings2, Wrench } from "lucide-react";
import { createContext, memo, type ReactNode, type Ref, useCallback, useContext, useImperativeHandle, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { showWords } from "@/reading/foundWords";
import { rowsInGroups } from "@/lib/rowGroups";
import { compactNumber, duration, fullTime, clockTimeWithSeconds } from "@/lib/format";
import { Literal } from "@/reading/Literal";
import { Markdown } from "@/reading/Markdown";
import { callWorkedMs, type ModelStep, modelFacts, type Step, type TextStep, thoughtsLabel, type ToolStep } from "@/views/threads/steps";

/** Keys of the expanded steps. They are kept outside the rows because the virtualizer unmounts rows that scroll away. */
const ExpandedKeys = createContext(new Set<string>());
function useExpanded(key: string): [boolean, (open: boolean) => void] {
  const all = useContext(ExpandedKeys);
  const [isOpen, setOpen] = useState(all.has(key));
  return [
    isOpen,
    (open) => {
      if (open) all.add(key);
      else all.delete(key);
      setOpen(open);
    },
  ];
}

/** The key of the step that a search has found. */
const FoundKey = createContext<string | null>(null);
const FOUND_STYLE = "rounded-md bg-wait-bg";

export interface StepListHandle {
  /** Scroll to a step or to one of its tool calls, expand it and focus it; mark it with these words, if a search led here. */
  reveal: (key: string, words?: string[]) => void;
}

/** `now` is null while nobody works on the thread. */
export function StepList({ all, now, handle, children }: { all: Step[]; now: number | null; handle: Ref<StepListHandle>; children: ReactNode }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [expandedKeys] = useState(() => new Set<string>());
  const [foundKey, setFoundKey] = useState<string | null>(null);
  // The virtualizer computes the positions of all rows again when this function changes, so it must be stable.
  const stepKey = useCallback((at: number) => all[at]!.key, [all]);
  const virtualizer = useVirtualizer({
    count: all.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (all[at]!.kind === "text" ? 76 : 92),
    getItemKey: stepKey,
    overscan: 3,
    rangeExtractor: rowsInGroups,
    paddingEnd: 16,
    directDomUpdates: true,
    useFlushSync: false,
  });
  useImperativeHandle(handle, () => ({
    reveal: (key, words) => {
      const at = all.findIndex((step) => step.key === key || (step.kind === "model" && step.calls.some((call) => call.key === key)));
      if (at < 0) return;
      expandedKeys.add(key);
      setFoundKey(words ? key : null);
      const element = () => scroller.current?.querySelector<HTMLElement>(`[data-step="${CSS.escape(key)}"]`);
      virtualizer.scrollToIndex(at, { align: "center" });
      // The virtualizer renders the row in the next frame and measures it in the frame after. Only then can the row be focused.
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          const found = element();
          if (found instanceof HTMLDetailsElement) found.open = true;
          (found?.querySelector<HTMLElement>(":scope > summary") ?? found)?.focus({ preventScroll: true });
          if (words) showWords(element, words);
        }),
      );
    },
  }));
  return (
    <ExpandedKeys value={expandedKeys}>
      <FoundKey value={foundKey}>
        <div ref={scroller} id="steps" className="scroll min-h-0 bg-canvas flex-1 [overflow-anchor:none]" tabIndex={0} role="region" aria-label="Steps">
          <ol ref={virtualizer.containerRef} className="relative">
            {virtualizer.getVirtualItems().map((virtualItem) => {
              const step = all[virtualItem.index]!;
              return (
                <li key={virtualItem.key} ref={virtualizer.measureElement} data-index={virtualItem.index} aria-setsize={all.length} aria-posinset={virtualItem.index + 1} className="absolute inset-x-4 top-0 max-md:inset-x-3">
                  {step.kind === "text" ? <TextStepItem step={step} /> : <ModelStepItem step={step} now={hasOpenCall(step) ? now : null} />}
                </li>
              );
            })}
          </ol>
          {children}
        </div>
      </FoundKey>
    </ExpandedKeys>
  );
}

/** Whether a call of the step has no result yet. Its duration then grows with the clock. */
const hasOpenCall = (step: ModelStep): boolean => step.calls.some((call) => call.endedAt === null);

const LONG_CHARACTERS = 420;
const TextStepItem = memo(function TextStepItem({ step }: { step: TextStep }) {
  const title = { system: "System prompt", user: "Message to the agent", tool: "Tool output" }[step.role];
  const Icon = step.role === "system" ? Settings2 : MessageSquare;
  const isLong = step.text.length > LONG_CHARACTERS || step.role === "system";
  return (
    <FoundFrame of={step.key}>
      <StepFrame icon={<Icon />} title={title} at={step.at}>
        {isLong ? (
          <Collapsible id={step.key} label={`${compactNumber(step.text.length)} characters`} preview={step.role === "system" ? "" : step.text.slice(0, 200)}>
            <PlainText text={step.text} />
          </Collapsible>
        ) : (
          <PlainText text={step.text} />
        )}
      </StepFrame>
    </FoundFrame>
  );
});

const ModelStepItem = memo(function ModelStepItem({ step, now }: { step: ModelStep; now: number | null }) {
  return (
    <FoundFrame of={step.key}>
      <StepFrame icon={<Bot />} title="Model" at={step.endedAt} facts={modelFacts(step)}>
        <Thoughts step={step} />
        {step.text.trim() && <Markdown text={step.text} />}
        {step.calls.length > 0 && (
          <div className="mt-1.5 space-y-1">
            {step.calls.map((call) => (
              <ToolCallItem key={call.key} call={call} now={now} />
            ))}
          </div>
        )}
        {step.refusal && (
          <p className="mt-1 flex gap-2 text-fail">
            <CircleAlert className="mt-0.5 size-3.5 shrink-0" aria-hidden /> The provider withheld the rest: {step.refusal}
          </p>
        )}
        {!step.text.trim() && step.calls.length === 0 && !step.refusal && <p className="text-ink-3">No text.</p>}
      </StepFrame>
    </FoundFrame>
  );
});

/** A step that can be focused, marked if a search has found it. */
function FoundFrame({ of, children }: { of: string; children: ReactNode }) {
  const isFound = useContext(FoundKey) === of;
  return (
    <div data-step={of} tabIndex={-1} aria-current={isFound || undefined} className={cx(isFound && FOUND_STYLE)}>
      {children}
    </div>
  );
}

/** The thoughts of a step, folded. The text comes from a model, so it is shown as it is. */
function Thoughts({ step }: { step: ModelStep }) {
  const [isOpen, setOpen] = useExpanded(`${step.key}:thoughts`);
  const label = thoughtsLabel(step);
  if (!label) return null;
  if (!step.thoughts) return <p className="my-1 flex items-center gap-2 text-xs text-ink-3"><Brain className="size-3.5" aria-hidden /> {label}</p>;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)} className="my-1">
      <summary className="-mx-1.5 flex min-h-7 list-none items-center gap-2 rounded-sm px-1.5 text-xs text-ink-2 hover:bg-hover pointer-coarse:min-h-11">
        <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3", isOpen && "rotate-90")} aria-hidden />
        <Brain className="size-3.5 shrink-0 text-ink-3" aria-hidden /> {label}
      </summary>
      {isOpen && (
        <div className="mt-1 ml-1.5 border-l-2 border-line-2 pl-3 break-words whitespace-pre-wrap text-ink-2">
          <Literal text={step.thoughts} />
        </div>
      )}
    </details>
  );
}

/** Return how long a call took; a wait is named beside it, because it is no work. */
function callTime(call: ToolStep, now: number | null): string {
  if (call.endedAt === null) return now === null ? "waiting" : "no output yet";
  return duration(callWorkedMs(call, 0)) + (call.waitedMs >= 1000 ? `, waited ${duration(call.waitedMs)}` : "");
}

function ToolCallItem({ call, now }: { call: ToolStep; now: number | null }) {
  const [isOpen, setOpen] = useExpanded(call.key);
  const isFound = useContext(FoundKey) === call.key;
  const mainArgument = Object.values(call.arguments).find((value) => typeof value === "string" && value !== "") as string | undefined;
  return (
    <details data-step={call.key} aria-current={isFound || undefined} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)} className={cx("rounded-md border border-line", isFound ? FOUND_STYLE : "bg-surface")}>
      <summary className="flex min-h-8 list-none items-center gap-2 rounded-md px-2.5 text-sm hover:bg-hover pointer-coarse:min-h-11">
        <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3", isOpen && "rotate-90")} aria-hidden />
        <Wrench className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span dir="auto" className="shrink-0 font-mono text-xs font-medium">{call.name}</span>
        {call.reading && (
          <span title={call.reading} className="flex shrink-0 items-center gap-1 text-xs text-ink-3">
            <PenLine className="size-3.5" aria-hidden /> repaired
          </span>
        )}
        <span className="min-w-0 flex-1 truncate text-xs text-ink-3">{mainArgument}</span>
        {call.failed && (
          <span className="flex items-center gap-1 text-xs font-medium text-fail">
            <CircleAlert className="size-3.5" aria-hidden /> Failed
          </span>
        )}
        <span className="tabular shrink-0 text-xs text-ink-3">{callTime(call, now)}</span>
      </summary>
      {isOpen && (
        <div className="space-y-2 border-t border-line p-2.5">
          {call.reading && (
            <p className="text-xs text-ink-2">
              Repaired before the call: <Literal text={call.reading} />
            </p>
          )}
          <LabelledText title="Arguments" text={JSON.stringify(call.arguments, null, 2)} />
          {call.endedAt !== null && <LabelledText title={call.failed ? "Failed" : "Output"} text={call.text || "No output."} />}
        </div>
      )}
    </details>
  );
}

function LabelledText({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <p dir="auto" className="text-xs text-ink-3">{title}</p>
      <pre tabIndex={0} className="scroll max-h-96 rounded-sm bg-sunken p-2 text-xs leading-[18px] break-words whitespace-pre-wrap">
        <Literal text={text} />
      </pre>
    </div>
  );
}

const PlainText = ({ text }: { text: string }) => <p dir="auto" className="break-words whitespace-pre-wrap text-ink-2">{text}</p>;

function Collapsible({ id, label, preview, children }: { id: string; label: string; preview: string; children: ReactNode }) {
  const [isOpen, setOpen] = useExpanded(id);
  return (
    <>
      {!isOpen && preview && <PlainText text={`${preview}…`} />}
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className="min-h-6 text-xs text-ink-2 underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-10">
        {isOpen ? "Show less" : `Show all (${label})`}
      </button>
      {isOpen && children}
    </>
  );
}

function StepFrame({ icon, title, at, facts, children }: { icon: ReactNode; title: string; at: number; facts?: string; children: ReactNode }) {
  const moment = new Date(at).toISOString();
  return (
    <div className="flex gap-3 py-2.5">
      <span className="mt-0.5 flex size-6 shrink-0 items-center justify-center rounded-full bg-sunken text-ink-2 [&_svg]:size-3.5" aria-hidden>
        {icon}
      </span>
      <div className="min-w-0 flex-1 text-sm">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span dir="auto" className="font-medium">{title}</span>
          <span className="tabular text-xs text-ink-3">{facts}</span>
          <time dateTime={moment} title={fullTime(moment)} className="tabular ml-auto text-xs text-ink-3">
            {clockTimeWithSeconds(moment)}
          </time>
        </p>
        {children}
      </div>
    </div>
  );
}
