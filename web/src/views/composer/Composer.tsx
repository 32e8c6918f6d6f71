/** Composer: the text field for messages to one agent, with attachments, mentions and references. It is never disabled; sending and stopping are separate buttons. */
import { ArrowUp, KeyRound, Paperclip } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type Agent, api, errorMessage, type Team, unwrap } from "@/api/client";
import { conversationQuery, queryClient } from "@/api/queries";
import { live, useLive } from "@/live";
import { lazyChunk } from "@/live/chunks";
import { isComposing } from "@/lib/composing";
import { cx } from "@/lib/cx";
import { capitalize } from "@/lib/format";
import { randomId } from "@/lib/randomId";
import { useIsStopped, WAITS } from "@/parts/serverQueries";
import { isAtWork } from "@/parts/teamState";
import { showNote } from "@/parts/toast";
import { Button, IconButton, Kbd } from "@/ui";
import { AnsweringChip, useAnswering } from "@/views/composer/Answering";
import { AttachmentList } from "@/views/composer/AttachmentList";
import { type Attachment, MAX_PASTE, pastedFiles, textAsFile, tooLong } from "@/views/composer/attachments";
import type { CompletionKeys } from "@/views/composer/Completion";
import { attachFiles, currentReferences, currentText, restoreFiles, storedText, useComposer } from "@/views/composer/composerState";
import { endEditing, lastWritten, startEditing, useEditing } from "@/views/composer/editing";
import { mentionedIn, type Reference, type Typed, typedAt, withLinks } from "@/views/composer/references";
import { sendWritten } from "@/views/composer/sending";

const Completion = lazyChunk(() => import("@/views/composer/Completion"));
const SecretForm = lazyChunk(() => import("@/views/composer/SecretForm"));
const EditingChip = lazyChunk(() => import("@/views/composer/EditingChip"));
const NO_FILES: Attachment[] = [];
export const ACTS_HINT = "What a reply did stands under it. Without such a line it did nothing.";
const KEYS = [["⏎", "send"], ["⇧ ⏎", "new line"], ["?", "all keys"], ["@", "member"], ["#", "task or file"]] as const;

/** Return the hint below the text field: when the agent answers. */
function replyHint(agent: Agent, leadsWork: boolean, isStopped: boolean): string {
  const name = capitalize(agent.name);
  if (isStopped) return `${WAITS}. ${name} answers when you resume it`;
  if (agent.retired_at !== null) return `${name} is a former member; a message brings it back`;
  if (leadsWork) return "Answers at once, while the work continues";
  if (agent.status === "working") return `${name} answers at once and reads this between steps`;
  return agent.status === "waiting_for_you" ? `${name} waits for your answer above` : `${name} answers at once`;
}

/** Return the hint for a message with mentions: who gets it. */
function mentionHint(mentioned: Agent[], agent: Agent): string {
  const names = mentioned.map((one) => capitalize(one.name)).join(", ");
  return mentioned.includes(agent) ? `Goes to ${names}` : `Goes to ${names}, not to ${capitalize(agent.name)}`;
}

const refuse = (text: string) => showNote(text, true);

/** `stop` is the button that stops the work of the conversation. */
export function Composer({ team, agent, isCoordinator, agents, stop }: { team: Team; agent: Agent; isCoordinator: boolean; agents: Agent[]; stop: ReactNode }) {
  const text = useComposer((state) => state.texts[agent.id]) ?? storedText(agent.id);
  const files = useComposer((state) => state.files[agent.id]) ?? NO_FILES;
  const editing = useEditing(agent.id);
  const isNudge = useComposer((state) => state.nudges[agent.id] ?? false) && editing === null;
  const { wantsFocus, setText, setFiles, addReference, setNudge } = useComposer();
  const isLive = useLive((state) => state.connection === "live");
  const isStopped = useIsStopped();
  const [isDragOver, setIsDragOver] = useState(false);
  const [typed, setTyped] = useState<Typed | null>(null);
  /** The part of the text that becomes a secret, while the form for it is open. */
  const [marked, setMarked] = useState<{ start: number; end: number } | null>(null);
  const [activeOption, setActiveOption] = useState<string | undefined>();
  const input = useRef<HTMLTextAreaElement>(null);
  const completion = useRef<CompletionKeys>(null);
  const filePicker = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const element = input.current;
    if (!element) return;
    // Reset the height first: scrollHeight is never less than the current height.
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 220)}px`;
  }, [text]);
  useEffect(() => {
    if (!wantsFocus) return;
    input.current?.focus();
    useComposer.setState({ wantsFocus: false });
  }, [wantsFocus]);
  useEffect(() => void restoreFiles(agent.id), [agent.id]);

  const mentioned = mentionedIn(text, agents);
  const problem = tooLong(text);
  const answering = useAnswering(team.id, agent.id, { isPlain: mentioned.length === 0 && files.length === 0 && !isNudge && editing === null });
  const canSend = (text.trim() !== "" || files.length > 0) && problem === null;
  const send = async () => {
    if (!canSend) return;
    const unsent = answering?.isOn ? await answering.send() : await sendWritten(agent.id, agents, isNudge ? "nudge" : "send");
    if (unsent !== null) return refuse(unsent);
    setTyped(null);
    // This button exists only while the conversation is scrolled up. Clicking it shows the message that was just sent, unless the person has opened another conversation meanwhile.
    if (document.querySelector(`[data-composer="${agent.id}"]`)) document.getElementById("to-end")?.click();
  };
  const onKey = (event: KeyboardEvent) => {
    if (isComposing(event.nativeEvent)) return;
    if (typed && !event.shiftKey && !event.ctrlKey && completion.current?.press(event.key)) return event.preventDefault();
    // On touch keyboards Enter is a new line.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && (!isTouch || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void send();
    }
    if (event.key === "ArrowUp" && text === "" && !editing && files.length === 0) {
      const last = lastWritten(queryClient.getQueryData(conversationQuery(agent.id).queryKey)?.messages ?? [], live.store.getState().unsent, agent.id);
      if (last) event.preventDefault();
      if (last) startEditing(agent.id, last);
    }
    if (event.key === "Escape" && editing) {
      event.stopPropagation();
      return endEditing(agent.id);
    }
    // The conversation takes the focus: it can be scrolled, and letters are shortcuts there.
    if (event.key === "Escape") document.getElementById("thread")?.focus({ preventScroll: true });
  };
  const readTyped = () => {
    const element = input.current;
    if (element) setTyped(element.selectionStart === element.selectionEnd ? typedAt(element.value, element.selectionStart) : null);
  };
  const complete = (token: string, reference: Reference | null) => {
    const element = input.current;
    if (!element || !typed) return;
    if (reference) addReference(agent.id, reference);
    const after = text.slice(typed.start + 1 + typed.words.length);
    const before = `${text.slice(0, typed.start)}${token}${/^\s/.test(after) ? "" : " "}`;
    setText(agent.id, before + after);
    setTyped(null);
    requestAnimationFrame(() => element.setSelectionRange(before.length, before.length));
  };
  const closeCompletion = useCallback(() => setTyped(null), []);
  /** Attach the files that fit; return whether all of them are attached. */
  const attach = async (chosen: File[], pasted?: string): Promise<boolean> => {
    const problems = await attachFiles(agent.id, chosen, pasted);
    problems.forEach(refuse);
    return problems.length === 0;
  };
  /** Empty the text field, unless the person has gone on writing. */
  const clearText = (sent: string) => {
    if (currentText(agent.id) === sent) setText(agent.id, "");
  };
  const sendAsFile = async () => {
    if (await attach([textAsFile(text, files)], text)) clearText(text);
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = event.clipboardData.getData("text/plain");
    const copied = pastedFiles(event.clipboardData);
    if (copied.length > 0) {
      event.preventDefault();
      void attach(copied);
    } else if (pasted.length > MAX_PASTE) {
      event.preventDefault();
      void attach([textAsFile(pasted, files)], pasted);
    }
  };
  const onDrop = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return; // words that are dropped go into the message
    event.preventDefault();
    setIsDragOver(false);
    input.current?.focus();
    void attach([...event.dataTransfer.files]);
  };
  const chooseFiles = () => {
    // The browser returns the focus to the text field when its chooser closes, also without a file.
    input.current?.focus();
    filePicker.current?.click();
  };
  const removeFile = (index: number) => {
    void setFiles(agent.id, files.filter((_, other) => other !== index));
    input.current?.focus();
  };
  const insertPasted = (index: number) => {
    setText(agent.id, text + (files[index]!.pasted ?? ""));
    removeFile(index);
  };
  const markSecret = () => {
    const { selectionStart: start, selectionEnd: end } = input.current!;
    setMarked({ start, end });
  };
  /** Write the name of the secret where the secret stood, or where the caret was. */
  const writeName = (name: string) => {
    const { start, end } = marked!;
    const [before, after] = [text.slice(0, start), text.slice(end)];
    setText(agent.id, `${before}${/\S$/.test(before) ? " " : ""}secret ${name}${/^\S/.test(after) ? " " : ""}${after}`);
    setMarked(null);
    useComposer.setState({ wantsFocus: true });
  };
  /** Write what is typed on a button into the text field: the character goes where the focus is after this event. */
  const onTyped = (event: KeyboardEvent) => {
    if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) input.current?.focus();
  };
  const leaveEditing = () => {
    endEditing(agent.id);
    input.current?.focus();
  };
  const isBusy = agent.status === "working" || agent.status === "waiting";
  const canBroadcast = isCoordinator && !editing && mentioned.length === 0 && files.length === 0 && problem === null && agents.filter((one) => one.retired_at === null).length > 1;
  return (
    <div className="shrink-0 px-4 pt-1 pb-2 max-md:px-2">
      <div
        data-composer={agent.id}
        data-draft={text.trim() !== "" || files.length > 0 ? "" : undefined}
        onKeyDown={onTyped}
        onDragOver={(event) => {
          if (!event.dataTransfer.types.includes("Files")) return;
          event.preventDefault();
          setIsDragOver(true);
        }}
        onDragLeave={() => setIsDragOver(false)}
        onDrop={onDrop}
        className={cx("relative rounded-lg border base:border-control bg-surface shadow-low focus-within:border-ink", isDragOver && "border-dashed border-work-dot")}
      >
        {typed && (
          <Suspense>
            <Completion team={team} agents={agents} typed={typed} onChoose={complete} onClose={closeCompletion} onActive={setActiveOption} keys={completion} />
          </Suspense>
        )}
        {answering && <AnsweringChip {...answering} />}
        {editing && (
          <Suspense>
            <EditingChip {...editing} team={team.id} agentId={agent.id} onLeave={leaveEditing} />
          </Suspense>
        )}
        <textarea
          dir="auto"
          ref={input}
          id="composer"
          rows={1}
          value={text}
          aria-label={`Message ${capitalize(agent.name)}`}
          aria-autocomplete="list"
          aria-controls={activeOption ? "completion" : undefined}
          aria-activedescendant={activeOption}
          placeholder={`Message ${capitalize(agent.name)}…`}
          onChange={(event) => {
            setText(agent.id, event.target.value);
            readTyped();
          }}
          onSelect={readTyped}
          onBlur={closeCompletion}
          onKeyDown={onKey}
          onPaste={onPaste}
          className="scroll block max-h-[220px] w-full resize-none bg-transparent px-3.5 pt-3 pb-1 outline-none"
        />
        {files.length > 0 && <AttachmentList files={files} onRemove={removeFile} onInsert={insertPasted} />}
        {mentioned.some((one) => one.id !== agent.id) && (
          <p role="status" dir="auto" className="px-3.5 py-1 text-xs font-medium text-work">
            {mentionHint(mentioned, agent)}
          </p>
        )}
        {problem && (
          <p role="alert" className="flex flex-wrap items-center gap-2 px-3.5 py-1 text-xs text-fail">
            {problem}
            <Button size="sm" onClick={() => void sendAsFile()}>
              Send it as a file
            </Button>
          </p>
        )}
        <div className="flex items-center gap-1 p-2">
          <input ref={filePicker} type="file" multiple hidden onChange={(event) => void attach([...(event.target.files ?? [])]).then(() => filePicker.current && (filePicker.current.value = ""))} />
          <IconButton label="Attach files" onClick={chooseFiles}>
            <Paperclip className="size-4" />
          </IconButton>
          <IconButton label="Secret: a password that nobody reads" onClick={markSecret}>
            <KeyRound className="size-4" />
          </IconButton>
          {(isBusy || isNudge) && !editing && (
            <Button variant={isNudge ? "primary" : "ghost"} size="sm" aria-pressed={isNudge} onClick={() => setNudge(agent.id, !isNudge)} title="Adds the message to the current work; the agent does not reply">
              Don't reply
            </Button>
          )}
          <span className="min-w-0 flex-1 truncate px-1 text-xs text-ink-3 max-sm:opacity-0">{isLive ? mentioned.length === 0 && !answering?.isOn && replyHint(agent, isCoordinator && isAtWork(team.state) && team.state !== "paused", isStopped) : "Not connected: your message is sent when the connection is back"}</span>
          {canBroadcast && text.trim() && <BroadcastButton team={team} agent={agent} text={text} onSent={clearText} />}
          {stop}
          <Button variant="primary" onClick={() => void send()} disabled={!canSend} aria-label="Send">
            <span className="max-sm:sr-only">Send</span> <ArrowUp className="size-4" />
          </Button>
        </div>
      </div>
      {marked && (
        <Suspense>
          <SecretForm marked={text.slice(marked.start, marked.end)} onKept={writeName} onClose={() => setMarked(null)} />
        </Suspense>
      )}
      <div className="flex h-[22px] gap-4 overflow-hidden pt-1 text-2xs whitespace-nowrap text-ink-3 max-md:hidden pointer-coarse:hidden">
        <span className="mr-auto">{ACTS_HINT}</span>
        {/* A key without room goes to a second line, which is cut off. */}
        <span className="flex min-w-0 flex-1 flex-wrap justify-end gap-3">
          {KEYS.map(([key, what]) => (
            <span key={key}>
              <Kbd>{key}</Kbd> {what}
            </span>
          ))}
        </span>
      </div>
      <p className="hidden pt-1 text-center text-2xs text-ink-3 pointer-coarse:block">Tap the arrow to send · @ names a member, # a task or file · {ACTS_HINT}</p>
    </div>
  );
}

function BroadcastButton({ team, agent, text, onSent }: { team: Team; agent: Agent; text: string; onSent: (text: string) => void }) {
  // The same words have the same key, so a second request after a lost response sends them once.
  const idempotencyKey = useMemo(randomId, [text]);
  const [isSending, setIsSending] = useState(false);
  const broadcast = async () => {
    setIsSending(true);
    try {
      await unwrap(
        api.POST("/api/teams/{team}/broadcast", {
          params: { path: { team: team.id }, header: { "idempotency-key": idempotencyKey } },
          body: { message: withLinks(text.trim(), currentReferences(agent.id)) },
        }),
      );
      onSent(text);
      showNote("The message was sent to everyone on the team.");
    } catch (error) {
      refuse(errorMessage(error));
    } finally {
      setIsSending(false);
    }
  };
  return (
    <Button variant="ghost" size="sm" disabled={isSending} onClick={() => void broadcast()} className="max-sm:hidden">
      Tell everyone
    </Button>
  );
}
