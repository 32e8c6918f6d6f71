/** Digest: what the person may decide on, team by team, and which teams have ended meanwhile. Knowledge, notes and triggers can be confirmed together; a way out is decided one by one. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowLeft, Check, ListChecks, X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { digestQuery, invalidateKnowledge, queryClient, queryKeys } from "@/api/queries";
import { Literal, LongText } from "@/reading/Literal";
import { decidedText, type Decisions, type DigestEntry, entryTitle, entryWords, groupEntries, isForAll } from "@/views/inbox/digestEntries";
import { NONE, only, type Selection, toggle, toggleAll } from "@/views/inbox/selection";
import { bulk, type Outcome } from "@/views/inbox/useFiling";
import { type NodeStatus, PARTIAL } from "@/lib/endings";
import { fullTime, plural, shortTime } from "@/lib/format";
import { randomId } from "@/lib/randomId";
import { Button, EmptyState, ErrorPanel, Loading } from "@/ui";
import { screenHref } from "@/lib/screens";
import { ConfirmAll } from "@/parts/ConfirmAll";
import { showError, showToast } from "@/parts/toast";

type TeamDigest = Schemas["DigestView"];

function useDecide() {
  return useMutation({
    mutationFn: (body: Decisions) => unwrap(api.POST("/api/inbox/digest", { params: { header: { "idempotency-key": randomId() } }, body: { confirm: [], reject: [], always: [], stop: [], ...body } })),
    onSuccess: (decided, body) => {
      showToast(decidedText(body, decided.ids.length));
      invalidateKnowledge();
      for (const key of [queryKeys.digest, queryKeys.inbox, ["triggers"]]) void queryClient.invalidateQueries({ queryKey: key });
    },
    onError: (error) => {
      showError("Your decision could not be saved", error);
      // Somebody else may have decided on it: show what there is now.
      void queryClient.invalidateQueries({ queryKey: queryKeys.digest });
    },
  });
}

export default function Digest() {
  const digest = useQuery(digestQuery);
  return (
    <>
      <header className="flex h-[52px] shrink-0 items-center gap-2 border-b border-line px-4 max-md:px-2">
        <Link to="/inbox" aria-label="Back to the inbox" className="flex size-10 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover min-[1180px]:hidden">
          <ArrowLeft className="size-5" />
        </Link>
        <h1 className="text-md font-semibold">Needs review</h1>
      </header>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {digest.isPending && <Loading label="Loading what needs review" />}
        {digest.isError && <ErrorPanel title="The list could not be loaded" detail={errorMessage(digest.error)} onRetry={() => void digest.refetch()} />}
        {digest.data?.length === 0 && (
          <EmptyState icon={<ListChecks />} title="Nothing needs review">
            What teams learn from outside sources, and what they ask for meanwhile, is collected here. They continue without waiting for you.
          </EmptyState>
        )}
        <div className="mx-auto max-w-[760px] px-6 py-4 max-md:px-3">
          {digest.data?.map((team) => (
            <TeamSection key={team.team_id} team={team} />
          ))}
        </div>
      </div>
    </>
  );
}

/** Decide on the selected entries, each by itself: one that is refused stops no other. */
function useDecideSelected(onRefused: (refused: Outcome[]) => void) {
  return useMutation({
    mutationFn: ({ action, ids }: { action: "confirm" | "reject" | "stop"; ids: string[] }) => bulk(action, ids),
    onSuccess: (outcomes, { action }) => {
      const done = outcomes.filter((one) => one.is_done).length;
      onRefused(outcomes.filter((one) => !one.is_done));
      if (done > 0) showToast(`${plural(done, "entry", "entries")} ${{ confirm: "confirmed", reject: "rejected", stop: "stopped" }[action]}.`);
      invalidateKnowledge();
      for (const key of [queryKeys.digest, queryKeys.inbox, ["triggers"]]) void queryClient.invalidateQueries({ queryKey: key });
    },
    onError: (error) => showError("Your decision could not be saved", error),
  });
}

/** The bar above a team's entries: which of them are selected, and what to decide on them. */
function SelectedBar({ team, selection, onSelect }: { team: TeamDigest; selection: Selection; onSelect: (selection: Selection) => void }) {
  const [refused, setRefused] = useState<Outcome[]>([]);
  const decide = useDecideSelected((outcomes) => {
    setRefused(outcomes);
    onSelect({ ids: new Set(outcomes.map(({ id }) => id)), anchor: null });
  });
  const order = team.entries.filter(isForAll).map((entry) => entry.id);
  const chosen = team.entries.filter((entry) => selection.ids.has(entry.id));
  const triggers = chosen.filter((entry) => entry.kind === "trigger").map((entry) => entry.id);
  const known = chosen.filter((entry) => entry.kind !== "trigger").map((entry) => entry.id);
  const textOf = (id: string) => entryWords(team.entries.find((entry) => entry.id === id)!).slice(0, 60);
  if (order.length === 0) return null;
  return (
    <>
      <div role="toolbar" aria-label={`Selected entries of ${team.team_name}`} className="sticky top-0 z-10 mt-1 flex min-h-10 flex-wrap items-center gap-2 border-b border-line bg-canvas py-1">
        <label className="flex min-h-8 cursor-pointer items-center gap-2 text-xs text-ink-2 pointer-coarse:min-h-11">
          <input
            type="checkbox"
            checked={selection.ids.size === order.length}
            ref={(element) => {
              if (element) element.indeterminate = selection.ids.size > 0 && selection.ids.size < order.length;
            }}
            onChange={() => onSelect(toggleAll(selection, order))}
            className="size-4"
          />
          {chosen.length === 0 ? `Select all ${order.length}` : `${chosen.length} selected`}
        </label>
        <span className="flex-1" />
        {chosen.length > 0 && (
          <Button size="sm" disabled={decide.isPending} onClick={() => decide.mutate({ action: "confirm", ids: [...known, ...triggers] })}>
            <Check className="size-3.5" aria-hidden /> Confirm {chosen.length}
          </Button>
        )}
        {known.length > 0 && (
          <Button size="sm" variant="ghost" disabled={decide.isPending} onClick={() => decide.mutate({ action: "reject", ids: known })}>
            <X className="size-3.5" aria-hidden /> Reject {known.length}
          </Button>
        )}
        {triggers.length > 0 && (
          <Button size="sm" variant="ghost" disabled={decide.isPending} onClick={() => decide.mutate({ action: "stop", ids: triggers })}>
            <X className="size-3.5" aria-hidden /> Stop {plural(triggers.length, "trigger")}
          </Button>
        )}
      </div>
      {refused.length > 0 && (
        <ul role="alert" className="mt-1 rounded-md border border-wait-line bg-wait-bg px-3 py-2 text-xs">
          {refused.map(({ id, reason }) => (
            <li key={id} dir="auto">
              {team.entries.some((entry) => entry.id === id) && (
                <>
                  “<Literal text={textOf(id)} keepEmoji />”:{" "}
                </>
              )}
              {reason}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function TeamSection({ team }: { team: TeamDigest }) {
  const [chosen, setChosen] = useState<Selection>(NONE);
  const groups = groupEntries(team);
  const order = groups.flatMap(({ sources }) => sources.flatMap(({ entries }) => entries.filter(isForAll).map((entry) => entry.id)));
  const selection = only(chosen, order);
  const decide = useDecide();
  const section = useRef<HTMLElement>(null);
  const decidedId = useRef<string | null>(null);
  const ids = team.entries.map((entry) => entry.id);
  const idsBefore = useRef(ids);
  useEffect(() => {
    const before = idsBefore.current;
    idsBefore.current = ids;
    if (decidedId.current === null || ids.includes(decidedId.current)) return;
    // The focused button is gone with its entry: focus the entry that took its place.
    const next = before.slice(before.indexOf(decidedId.current) + 1).find((id) => ids.includes(id)) ?? ids.at(-1);
    decidedId.current = null;
    if (document.activeElement === document.body) section.current?.querySelector<HTMLElement>(`[data-entry="${next}"] :is(a, button)`)?.focus();
  });
  return (
    <section ref={section} aria-label={`Needs review in ${team.team_name}`} className="mb-10">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="min-w-0 flex-1 truncate text-lg font-semibold">
          <Literal text={team.team_name} keepEmoji />
        </h2>
        <ConfirmAll ids={order} describedBy={`all-${team.team_id}`} />
      </div>
      {order.length > 1 && (
        <p id={`all-${team.team_id}`} className="text-xs text-ink-3">
          All means knowledge, notes and triggers. Requests and files are decided one by one.
        </p>
      )}
      {team.ended && <Ended ended={team.ended} />}
      <SelectedBar team={team} selection={selection} onSelect={setChosen} />
      {groups.map(({ name, title, note, sources }) => (
        <div key={name} role="group" aria-label={title} className="mt-4">
          <h3 dir="auto" className="flex items-baseline gap-2 text-sm font-semibold">
            {title} <span className="tabular text-xs font-normal text-ink-3">{sources.reduce((count, { entries }) => count + entries.length, 0)}</span>
          </h3>
          <p className="text-xs text-ink-2">{note}</p>
          {sources.map(({ source, entries }) => (
            <div key={source}>
              {source && entries.length > 1 && (
                <h4 dir="ltr" className="literal mt-2 text-xs font-medium text-ink-2">
                  {entries.length} from <Literal text={source} />
                </h4>
              )}
              <ul className="divide-y divide-line">
                {entries.map((entry) => (
                  <Row
                    key={entry.id}
                    entry={entry}
                    source={entries.length === 1 ? source : ""}
                    team={team.team_id}
                    isSending={decide.isPending}
                    isSelected={selection.ids.has(entry.id)}
                    onSelect={(isRange) => setChosen(toggle(selection, entry.id, order, isRange))}
                    decide={(body) => {
                      decidedId.current = entry.id;
                      decide.mutate(body);
                    }}
                  />
                ))}
              </ul>
            </div>
          ))}
        </div>
      ))}
    </section>
  );
}

/** How the team's goal ended, with a link to what it says about it. It is here until the person has read that. */
function Ended({ ended }: { ended: NonNullable<TeamDigest["ended"]> }) {
  const id = useId();
  return (
    <div role="group" aria-labelledby={id} className="mt-4">
      <h3 id={id} className="text-sm font-semibold">Ended</h3>
      <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1 py-2 text-sm">
        <span className={ended.status === "completed" ? "text-done" : "text-wait"}>{ENDED[ended.status] ?? "Not reached"}</span>
        <span className="line-clamp-2 min-w-0 flex-1 basis-60">
          <Literal text={ended.goal} keepEmoji />
        </span>
        <time dateTime={ended.ended_at} title={fullTime(ended.ended_at)} className="text-xs text-ink-3">
          {shortTime(ended.ended_at)}
        </time>
        <Link to="/inbox/$item" params={{ item: ended.message_id }} className={linkStyle}>
          See the result
        </Link>
      </p>
    </div>
  );
}
const ENDED: Partial<Record<NodeStatus, string>> = { completed: "Done", partial: PARTIAL };

interface RowProps {
  entry: DigestEntry;
  /** Where its words come from, if no heading above says it. */
  source: string;
  team: string;
  decide: (body: Decisions) => void;
  isSending: boolean;
  isSelected: boolean;
  onSelect: (isRange: boolean) => void;
}

function Row({ entry, source, team, decide, isSending, isSelected, onSelect }: RowProps) {
  const textId = useId();
  const title = entryTitle(entry);
  return (
    // A digest may have thousands of entries: the browser lays out only those that are in view.
    <li data-entry={entry.id} className="flex gap-2 py-3 [contain-intrinsic-size:auto_110px] [content-visibility:auto]">
      {isForAll(entry) && (
        <label className="-ml-2 flex w-8 shrink-0 cursor-pointer items-start justify-center pt-0.5 pointer-coarse:w-11">
          <input type="checkbox" aria-label="Select this entry" aria-describedby={textId} checked={isSelected} onChange={(event) => onSelect((event.nativeEvent as MouseEvent).shiftKey === true)} className="size-4" />
        </label>
      )}
      <div className="min-w-0 flex-1">
      <LongText id={textId} text={entryWords(entry)} label={title || "Words"} isCode={entry.kind === "ask" || entry.kind === "use"} />
      <p className="mt-1 flex flex-wrap items-center gap-x-2.5 gap-y-0.5 text-xs text-ink-3">
        {title && (
          <span dir="ltr" className="literal">
            <Literal text={title} />
          </span>
        )}
        <time dateTime={entry.created_at} title={fullTime(entry.created_at)}>
          {shortTime(entry.created_at)}
        </time>
        {source && (
          <span dir="ltr" className="literal">
            from <Literal text={source} />
          </span>
        )}
        {entry.is_waited_for && <span className="font-medium text-wait">Work waits for it</span>}
      </p>
      <Actions entry={entry} team={team} decide={decide} isSending={isSending} textId={textId} />
      </div>
    </li>
  );
}

const linkStyle = "inline-flex h-7 items-center rounded-sm border border-line-2 bg-surface px-2.5 text-xs font-medium hover:bg-hover pointer-coarse:h-10";

function Actions({ entry, team, decide, isSending, textId }: { entry: DigestEntry; team: string; decide: (body: Decisions) => void; isSending: boolean; textId: string }) {
  const about = { disabled: isSending, "aria-describedby": textId };
  if (entry.kind === "use") return null;
  const isTrigger = entry.kind === "trigger";
  return (
    <div className="mt-2 flex flex-wrap gap-2">
      {entry.kind === "ask" && (
        <Link to="/inbox/$item" params={{ item: entry.id }} aria-describedby={textId} className={linkStyle}>
          Look at the call and decide
        </Link>
      )}
      {entry.kind === "file" && (
        <>
          <Link to={screenHref(team, "files", entry.text) as "/"} aria-describedby={textId} className={linkStyle}>
            Read the file
          </Link>
          <Button size="sm" {...about} title="From now on the team treats its text as its own." onClick={() => decide({ confirm: [entry.id] })}>
            <Check className="size-3.5" aria-hidden /> I have read it: confirm
          </Button>
        </>
      )}
      {isForAll(entry) && (
        <>
          <Button size="sm" {...about} onClick={() => decide({ confirm: [entry.id] })}>
            <Check className="size-3.5" aria-hidden /> Confirm
          </Button>
          <Button size="sm" variant="ghost" {...about} onClick={() => decide(isTrigger ? { stop: [entry.id] } : { reject: [entry.id] })}>
            <X className="size-3.5" aria-hidden /> {isTrigger ? "Stop" : "Reject"}
          </Button>
        </>
      )}
    </div>
  );
}
