/** QuestionCard: a question or approval that waits for the person. Conversation, inbox and board show the same card; toasts show its body and form. */
import { Check, Hourglass, MessageCircleQuestion, RotateCw, ShieldQuestion, X } from "lucide-react";
import { useQuery } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { type FocusEvent, type KeyboardEvent, Suspense, useId, useRef, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import type { Message, Schemas } from "@/api/client";
import { openQuery } from "@/api/queries";
import type { GivenAnswer } from "@/live/log";
import { isComposing } from "@/lib/composing";
import { cx } from "@/lib/cx";
import { fullTime, clockTime, untilTime } from "@/lib/format";
import { GRANT_TEXT } from "@/lib/grantText";
import { useStoredDraft } from "@/lib/storedDraft";
import { Button, Kbd, Problem, Textarea } from "@/ui";
import { ApprovalCall, QuestionText } from "@/reading/ApprovalCall";
import { Literal } from "@/reading/Literal";
import { withoutMarks } from "@/reading/fence";
import { WholeMarkdown } from "@/reading/Markdown";
import { withoutEmphasis } from "@/reading/plainText";
import { readOn, ReadGate, useUnread } from "@/reading/ReadGate";
import { useAnswer } from "@/parts/answer";
import { useNoteInView } from "@/parts/unanswered";
import { useSettling } from "@/parts/settled";

const ChangeModel = lazyChunk(async () => ({ default: (await import("@/views/conversation/FailureActions")).ChangeModel }));
const EnterKey = lazyChunk(async () => ({ default: (await import("@/views/conversation/FailureActions")).EnterKey }));

/** The command that gives a team another model, which agiraph adds for people at a terminal. Here is a button for it. */
const COMMAND = / `agiraph set \S+ --model NAME` gives me another model\.$/;

interface Props {
  id: string;
  text: string;
  at: string;
  kind: "question" | "approval";
  asker: string;
  /** The message with its options, call and answer; null until it is loaded. */
  message: Message | null;
  answered: GivenAnswer | null;
  /** What "always" would allow; absent if each call is decided alone. */
  always?: Schemas["GrantOffer"] | null;
  /** The task that asked has ended. */
  isLate?: boolean;
  onDone?: () => void;
}

export function QuestionCard({ id, text, at, kind, asker, message, answered, always, isLate = false, onDone }: Props) {
  const mark = useMark(id);
  const card = useRef<HTMLDivElement>(null);
  const isAnswered = answered !== null || (message?.answered_at ?? null) !== null;
  useNoteInView(isAnswered ? "" : id, card);
  const Icon = kind === "approval" ? ShieldQuestion : MessageCircleQuestion;
  if (isAnswered) return <AnsweredCard {...{ text, asker, kind, message, answered }} />;
  return (
    // role="group", not a landmark: an agent may ask twice, and landmarks need different names.
    <div
      ref={card}
      role="group"
      data-question={id}
      {...mark}
      aria-label={`${asker} asks`}
      className="max-w-[640px] rounded-lg border border-wait-line bg-wait-bg p-4 data-marked:ring-2 data-marked:ring-wait-line"
    >
      <div className="mb-1.5 flex items-center gap-2 text-sm font-semibold text-wait">
        <Icon className="size-4 shrink-0" aria-hidden />
        <span className="flex-1">{headingOf(asker, kind, isLate)}</span>
        <time className="text-xs font-normal text-ink-2" dateTime={at} title={fullTime(at)}>
          {clockTime(at)}
        </time>
      </div>
      {isLate && <LateNote />}
      {/* Another request must be read anew, and a note belongs to one request. */}
      <ReadGate key={id}>
        <QuestionBody {...{ text, kind, message }} />
        {/* No buttons before the complete call is shown: the person must not approve what they cannot see. */}
        {kind === "approval" && message === null ? (
          <p className="mt-3 text-sm text-ink-2">Loading the call…</p>
        ) : (
          <AnswerForm id={id} kind={kind} options={message?.options ?? []} always={always ?? null} call={message?.call ?? null} stopped={message?.stopped_by ? message : null} onDone={onDone} />
        )}
      </ReadGate>
    </div>
  );
}

/** The card is marked if the person went to it: with a link or a key that names it in the URL, or with the focus. */
function useMark(id: string) {
  const isNamed = useRouterState({ select: (state) => state.location.href.includes(id) });
  const [hasFocus, setHasFocus] = useState(false);
  return {
    "data-marked": isNamed || hasFocus || undefined,
    onFocus: () => setHasFocus(true),
    onBlur: (event: FocusEvent) => setHasFocus(event.currentTarget.contains(event.relatedTarget)),
  };
}

function headingOf(asker: string, kind: Props["kind"], isLate: boolean): string {
  if (kind === "approval") return isLate ? `${asker} wanted your approval` : `${asker} wants your approval`;
  return isLate ? `${asker} asked` : `${asker} is waiting for your answer`;
}

/** What an answer still does after the task that asked has ended. */
export function LateNote() {
  return <p className="mb-1.5 text-sm text-ink-2">The task that asked has ended, so nothing starts by itself: you are asked what to do with your answer.</p>;
}

/** The question; for an approval why, what and what can go wrong, and the complete call. */
export function QuestionBody({ text, kind, message }: Pick<Props, "text" | "kind" | "message">) {
  const isApproval = kind === "approval";
  // What the browser has kept for a time without a server may be of an older one.
  const risks = message?.risks ?? [];
  return (
    <>
      {isApproval && message && (
        <div data-reason className="mb-2 border-l-2 border-line-2 pl-3">
          <p className="text-xs text-ink-2">{message.reason ? "Why, in its own words" : "It wrote no reason."}</p>
          {message.reason && <WholeMarkdown text={withoutMarks(message.reason)} className="scroll max-h-40" />}
        </div>
      )}
      {isApproval ? <QuestionText text={text} /> : <WholeMarkdown text={message?.stopped_by === "model" ? text.replace(COMMAND, "") : text} />}
      {isApproval && risks.length > 0 && (
        <p data-risks className="mt-1.5">
          <span className="font-medium">What can go wrong:</span> {riskText(risks)}
        </p>
      )}
      {isApproval && message?.call && <ApprovalCall call={message.call} />}
      {message?.waits_until && (
        <p className="mt-2 flex items-center gap-1.5 text-xs text-ink-2">
          <Hourglass className="size-3.5 shrink-0" aria-hidden />
          <span>
            Waits until <time dateTime={message.waits_until}>{untilTime(message.waits_until)}</time>, then goes on without your answer.
          </span>
        </p>
      )}
    </>
  );
}

type Risk = Message["risks"][number];
const RISKS: Record<Risk, string> = {
  reveals_words: "words of this team go to a server outside",
  reaches_allowed_hosts: "it talks to the hosts that you have allowed",
  reaches_any_host: "it can send what it reads to any host",
  sends_your_files: "it can send your files or mail to a host that nobody has allowed",
  sends_to_others: "it sends something to others",
  changes_outside: "it changes something outside of the team",
  changes_your_files: "it changes files in a folder of yours",
  changes_files: "it changes a file of the team",
  acts_later: "it has an effect after this work is done",
  more_tools: "it gives a new worker tools that this agent does not have",
  runs_program: "it runs a program",
  runs_command: "it runs a command",
  unconfined: "nothing confines it on this machine",
  cannot_be_undone: "it cannot be undone",
  unknown: "its tool has not said what it does",
};

/** Return what can go wrong as one sentence. */
function riskText(risks: readonly Risk[]): string {
  const said = risks.map((risk) => RISKS[risk]);
  const last = said.length > 1 ? `, and ${said.at(-1)}` : "";
  return `${said.slice(0, Math.max(1, said.length - 1)).join(", ")}${last}.`;
}

/** A key chooses in the marked card only: another one may appear just when the person presses it. */
const KEY_HINT = "not-in-[[data-marked]]:hidden";

interface FormProps {
  id: string;
  kind: "question" | "approval";
  options: string[];
  always?: Schemas["GrantOffer"] | null;
  call?: Message["call"];
  /** The question, if agiraph asks it because work cannot go on. */
  stopped?: Message | null;
  onDone?: () => void;
}

export function AnswerForm({ id, kind, options, always = null, call = null, stopped = null, onDone }: FormProps) {
  const [typed, setTyped] = useStoredDraft(`answer.${id}`);
  const { isSending, problem, answer } = useAnswer(id);
  const unread = useUnread();
  const canApprove = unread.length === 0 && !isSending;
  const { ref, isRefused, guards } = useSettling();
  const labelId = useId();
  const unreadId = useId();
  const noteId = useId();
  const reportDone = (refusal: string | null) => {
    if (refusal !== null) return;
    setTyped("");
    onDone?.();
  };
  const sendAnswer = (text: string) => void answer({ text }).then(reportDone);
  const note = typed.trim();
  const decide = (decision: "approve" | "deny") => void answer({ decision, note }).then(reportDone);
  const approveAlways = () => void answer({ decision: "approve", note, always: true }).then(reportDone);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event.nativeEvent)) return;
    event.preventDefault();
    if (!note || isSending) return;
    if (kind === "question") sendAnswer(note);
    // Words alone never approve: a person who writes "no, rather …" would allow the call with them.
    else decide("deny");
  };
  return (
    <div ref={ref} {...guards} data-form className="mt-3 data-unsettled:[&_button:not([data-typed])]:pointer-events-none">
      {kind === "question" && options.length > 0 && (
        <div className="mb-2 flex flex-wrap gap-2">
          {options.map((option, index) => (
            <Button key={index} disabled={isSending} data-option={index + 1} onClick={() => sendAnswer(option)} className="h-auto min-h-8 max-w-full py-1 text-left whitespace-pre-wrap">
              <span dir="ltr" className="literal" data-choice={index + 1}>
                <Literal text={withoutEmphasis(option)} keepEmoji />
              </span>{" "}
              {index < 9 && <span className={cx("text-2xs font-normal text-ink-3 pointer-coarse:hidden", KEY_HINT)}>{index + 1}</span>}
            </Button>
          ))}
        </div>
      )}
      {stopped && <StoppedActions stopped={stopped} isSending={isSending} sendAnswer={sendAnswer} />}
      <div className="flex flex-wrap gap-2">
        <label id={labelId} className="sr-only">
          {kind === "approval" ? "A note" : "Your answer"}
        </label>
        <Textarea
          aria-labelledby={labelId}
          aria-describedby={kind === "approval" && note ? noteId : undefined}
          rows={1}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={onKey}
          data-answer={id}
          placeholder={kind === "approval" ? "A note, if you like…" : options.length > 0 ? "Or write an answer…" : "Write an answer…"}
          className={cx("field-sizing-content max-h-40 min-h-9 min-w-0 flex-1 resize-none pointer-coarse:min-h-10", kind === "approval" && "basis-60 max-sm:basis-full")}
        />
        {kind === "question" ? (
          <Button variant="primary" className="h-9" data-typed disabled={isSending || !typed.trim()} onClick={() => sendAnswer(typed.trim())}>
            {isSending ? "Sending…" : "Answer"}
          </Button>
        ) : (
          <>
            <Button className="h-9" disabled={isSending} data-choose="2" onClick={() => decide("deny")}>
              <X className="size-4" /> Deny <Kbd className={KEY_HINT}>2</Kbd>
            </Button>
            <Button variant="primary" className="h-9" disabled={!canApprove} aria-describedby={unread.length > 0 ? unreadId : undefined} data-choose="1" onClick={() => decide("approve")}>
              <Check className="size-4" /> Approve <Kbd className={cx("border-paper/40 text-paper", KEY_HINT)}>1</Kbd>
            </Button>
          </>
        )}
      </div>
      {kind === "approval" && note && (
        <p id={noteId} className="mt-2 text-xs text-ink-2">
          Either button sends the note. Enter denies with it: the call is not made, and the agent reads what you wrote.
        </p>
      )}
      {kind === "approval" && unread.length > 0 && (
        <p id={unreadId} className="mt-2 flex flex-wrap items-center gap-x-2 text-xs text-ink-2">
          Read the call to its end, then you can approve it.
          <button type="button" className="min-h-6 underline pointer-coarse:min-h-11" onClick={() => readOn(unread)}>
            Go on reading
          </button>
        </p>
      )}
      {always && (
        <Button size="sm" disabled={!canApprove} onClick={approveAlways} className="mt-2 h-auto min-h-7 max-w-full py-1 text-left whitespace-normal">
          <span className="min-w-0">
            Always allow this team to <AlwaysText offer={always} call={call} />
          </span>
        </Button>
      )}
      {isRefused && <p role="status" className="mt-2 text-xs text-ink-2">The card came here just as you pressed. Look at it, then press again.</p>}
      <Problem of={problem} className="mt-2 text-xs" />
    </div>
  );
}

/** What a person can do about work that cannot go on, and how many teams wait for it. */
function StoppedActions({ stopped, isSending, sendAnswer }: { stopped: Message; isSending: boolean; sendAnswer: (text: string) => void }) {
  const { id, fault, fault_of } = stopped;
  const teams = useQuery({ ...openQuery(stopped.team_id), select: ({ items }) => new Set(items.find((one) => one.message.id === id)?.waiting_work.map((work) => work.team_id)).size }).data ?? 0;
  return (
    <>
      {teams > 1 && <p className="mb-2 text-sm font-medium">{teams} teams wait for this. {fault === "key" ? "A new key or one answer" : "One answer"} lets all of them go on.</p>}
      <div className="mb-2 flex flex-wrap gap-2">
        {fault === "key" && (
          <Suspense>
            <EnterKey provider={fault_of ?? ""} />
          </Suspense>
        )}
        <Button size="sm" disabled={isSending} data-option="1" onClick={() => sendAnswer("Try again.")}>
          <RotateCw className="size-3.5" aria-hidden /> {teams > 1 ? "Retry all" : "Try again"}
        </Button>
        {stopped.stopped_by === "model" && (
          <Suspense>
            <ChangeModel agent={stopped.sender} team={stopped.team_id} then="Change and try again" onChanged={() => sendAnswer(fault ? "Try again." : "You have another model now. Try again.")} />
          </Suspense>
        )}
      </div>
    </>
  );
}

/** What "always" would allow. Words that the card shows already, such as the exact command, are not repeated. */
function AlwaysText({ offer, call }: { offer: Schemas["GrantOffer"]; call: Message["call"] }) {
  if (offer.kind === "call") return "make exactly this call";
  // A grant for a command with less than the whole network names the network before the words.
  const [, network, command] = /^(?:network=(\w+) )?(.*)$/s.exec(offer.pattern)!;
  if (offer.kind === "command" && call && Object.values(call.arguments).includes(command)) return `run exactly this command${network ? ` with the network “${network}”` : ""}`;
  return (
    <>
      {GRANT_TEXT[offer.kind]}{" "}
      <code dir="ltr" className="literal">
        <Literal text={offer.pattern} isCode />
      </code>
    </>
  );
}

function AnsweredCard({ text, asker, kind, message, answered }: Pick<Props, "text" | "asker" | "kind" | "message" | "answered">) {
  const decision = answered?.decision ?? message?.decision ?? null;
  const answerText = answered?.text ?? "";
  const isClosed = answered?.isClosed ?? false;
  // An option that was chosen reads as on its button.
  const given = message?.options.includes(answerText) ? withoutEmphasis(answerText) : answerText;
  const verb = decision === "approve" ? "You approved" : decision === "deny" ? "You denied" : "You answered";
  return (
    <div role="group" aria-label={`${asker} asked`} className="max-w-[640px] rounded-lg border border-line p-4">
      <p className="mb-1 text-sm font-medium text-ink-2">
        {asker} {kind === "approval" ? "wanted your approval" : "asked"}
      </p>
      <QuestionBody {...{ text, kind, message }} />
      <p className="mt-2 flex items-start gap-2 border-t border-line pt-2 text-sm">
        {isClosed ? <X className="mt-0.5 size-4 shrink-0 text-ink-2" aria-hidden /> : <Check className="mt-0.5 size-4 shrink-0 text-done" aria-hidden />}
        {isClosed ? (
          <span className="text-ink-2">{answerText}</span>
        ) : (
          <span>
            <span className="text-ink-2">{verb}</span>
            {given && `: ${given}`}
          </span>
        )}
      </p>
    </div>
  );
}
