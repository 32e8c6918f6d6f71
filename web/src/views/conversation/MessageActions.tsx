/** MessageActions: copy, quote, link and edit a message. Under the mouse they appear over the message; for touch and keyboard a button opens them below it. */
import { Check, Copy, Ellipsis, Link2, Pencil, TextQuote } from "lucide-react";
import { type KeyboardEvent, useRef, useState } from "react";
import { copyText } from "@/lib/clipboard";
import { cx } from "@/lib/cx";
import type { MessageRow } from "@/live/log";
import { useComposer } from "@/views/composer/composerState";
import { startEditing, useLastWritten } from "@/views/composer/editing";
import { quotation } from "@/views/composer/references";

interface Props {
  row: MessageRow;
  /** The sender's name and the time, for a quotation. */
  author: string;
  team: string;
  /** The agent whose conversation this is. */
  agentId: string;
}

interface Action {
  icon: typeof Copy;
  label: string;
  done?: string;
  run: () => Promise<void> | void;
}

function useActions({ row, author, team, agentId }: Props): Action[] {
  const { putBefore } = useComposer.getState();
  const last = useLastWritten(agentId);
  const href = `/t/${team}/a/${agentId}?at=${row.id}`;
  const actions: Action[] = [
    { icon: Copy, label: "Copy message", done: "Copied", run: () => copyText(row.text) },
    { icon: TextQuote, label: "Quote message", run: () => putBefore(agentId, quotation(row.text, author, href)) },
    { icon: Link2, label: "Copy link to message", done: "Link copied", run: () => copyText(location.origin + href) },
  ];
  if (row.id === last?.id) actions.push({ icon: Pencil, label: "Edit and send again", run: () => startEditing(agentId, last) });
  return actions;
}

function ActionButton({ action, withText }: { action: Action; withText: boolean }) {
  const [isDone, setIsDone] = useState(false);
  const Icon = isDone ? Check : action.icon;
  const label = isDone && action.done ? action.done : action.label;
  const run = () => void Promise.resolve(action.run()).then(() => action.done && setIsDone(true));
  return (
    <button type="button" aria-label={label} title={label} onClick={run} className={cx("flex items-center justify-center gap-1.5 rounded-sm text-ink-3 hover:bg-hover hover:text-ink", withText ? "min-h-8 px-2.5 text-xs pointer-coarse:min-h-11" : "size-7")}>
      <Icon className="size-3.5 shrink-0" aria-hidden /> {withText && label.replace(/ (to )?message| and send again/, "")}
    </button>
  );
}

/** The toolbar that appears over a message under the mouse. */
export function HoverActions(props: Props) {
  const actions = useActions(props);
  return (
    <div className="absolute -top-1 right-3 hidden rounded-sm border border-line bg-surface shadow-low group-hover/message:flex pointer-coarse:hidden!">
      {actions.map((action) => (
        <ActionButton key={action.label} action={action} withText={false} />
      ))}
    </div>
  );
}

/** The button of a message where nothing hovers: on a touch screen, and for the keyboard, whose focus makes it visible. */
export function ActionsButton(props: Props) {
  const [isOpen, setIsOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.stopPropagation(); // outside, Escape goes to the end of the conversation
    setIsOpen(false);
    button.current?.focus();
  };
  return (
    <>
      <button ref={button} type="button" onKeyDown={onKeyDown} aria-label="Message actions" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)} className="pointer-events-none absolute top-0 right-0 flex size-8 items-center justify-center rounded-sm text-ink-3 opacity-0 focus-visible:opacity-100 aria-expanded:opacity-100 pointer-coarse:pointer-events-auto pointer-coarse:size-11 pointer-coarse:opacity-100">
        <Ellipsis className="size-4" />
      </button>
      {isOpen && <Toolbar {...props} onKeyDown={onKeyDown} />}
    </>
  );
}

function Toolbar({ onKeyDown, ...props }: Props & { onKeyDown: (event: KeyboardEvent) => void }) {
  const actions = useActions(props);
  return (
    <div role="group" aria-label="Message actions" onKeyDown={onKeyDown} className="mt-1 flex w-fit flex-wrap rounded-sm border border-line bg-surface">
      {actions.map((action) => (
        <ActionButton key={action.label} action={action} withText />
      ))}
    </div>
  );
}
