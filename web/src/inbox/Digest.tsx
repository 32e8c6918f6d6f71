/** Digest: what the person may decide on, team by team. Knowledge, notes and triggers can be confirmed together; a way out is decided one by one. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowLeft, Check, ListChecks, X } from "lucide-react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { digestQuery, queryClient, queryKeys } from "@/api/queries";
import { QuestionText } from "@/conversation/Literal";
import { fullTime, shortTime } from "@/lib/format";
import { randomId } from "@/lib/randomId";
import { Button, Chip, EmptyState, ErrorPanel, Loading } from "@/ui";
import { invalidateKnowledge } from "@/views/memory/knowledge";
import { showError, showToast } from "@/views/shared/toast";

type TeamDigest = Schemas["DigestView"];
type Entry = Schemas["DigestEntry"];
type Decisions = Partial<Schemas["DigestDecisions"]>;

const KINDS: Record<Entry["kind"], string> = {
  ask: "Asks for your approval",
  pending: "Waits for you",
  unverified: "Unverified knowledge",
  file: "A file with words of strangers",
  trigger: "Wakes itself later",
  use: "Used what you allowed",
};

/** Whether "confirm all" covers an entry: knowledge, notes and triggers, never a way out. */
const isForAll = (entry: Entry) => entry.kind === "pending" || entry.kind === "unverified" || entry.kind === "trigger";

function useDecide() {
  return useMutation({
    mutationFn: (body: Decisions) => unwrap(api.POST("/api/inbox/digest", { params: { header: { "idempotency-key": randomId() } }, body: { confirm: [], reject: [], always: [], stop: [], ...body } })),
    onSuccess: (decided) => {
      showToast(decided.ids.length === 1 ? "One entry was decided." : `${decided.ids.length} entries were decided.`);
      invalidateKnowledge();
      for (const key of [queryKeys.digest, queryKeys.inbox, ["triggers"]]) void queryClient.invalidateQueries({ queryKey: key });
    },
    onError: (error) => showError("Your decision could not be saved", error),
  });
}

export default function Digest() {
  const digest = useQuery(digestQuery);
  return (
    <>
      <header className="flex h-[52px] shrink-0 items-center gap-2 border-b border-line px-4 max-md:px-2">
        <Link to="/inbox" aria-label="Back to the inbox" className="flex size-10 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover md:hidden">
          <ArrowLeft className="size-5" />
        </Link>
        <h1 className="text-md font-semibold">To decide</h1>
      </header>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {digest.isPending && <Loading label="Loading what you can decide" />}
        {digest.isError && <ErrorPanel title="The list could not be loaded" detail={errorMessage(digest.error)} onRetry={() => void digest.refetch()} />}
        {digest.data?.length === 0 && (
          <EmptyState icon={<ListChecks />} title="Nothing to decide">
            What teams learned from strangers, and what they ask for meanwhile, is collected here. They go on without waiting for you.
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

function TeamSection({ team }: { team: TeamDigest }) {
  const decide = useDecide();
  const many = team.entries.filter(isForAll).length;
  return (
    <section aria-label={team.team_name} className="mb-8">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 className="min-w-0 flex-1 truncate text-lg font-semibold">{team.team_name}</h2>
        {many > 1 && (
          <Button size="sm" disabled={decide.isPending} title="Knowledge, notes and triggers of this list; requests stay open." onClick={() => decide.mutate({ team: team.team_id, confirm: "all", as_of: team.as_of })}>
            <Check className="size-3.5" /> Confirm all {many}
          </Button>
        )}
      </div>
      <ul className="divide-y divide-line">
        {team.entries.map((entry) => (
          <Row key={entry.id} entry={entry} decide={(body) => decide.mutate(body)} isSending={decide.isPending} />
        ))}
      </ul>
    </section>
  );
}

function Row({ entry, decide, isSending }: { entry: Entry; decide: (body: Decisions) => void; isSending: boolean }) {
  const isTrigger = entry.kind === "trigger";
  return (
    <li className="py-3.5">
      <p className="mb-1 flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xs text-ink-3">
        <Chip tone={entry.is_waited_for || entry.kind === "ask" ? "wait" : "plain"}>{KINDS[entry.kind]}</Chip>
        <span className="break-all">{entry.title}</span>
        <time dateTime={entry.created_at} title={fullTime(entry.created_at)}>
          {shortTime(entry.created_at)}
        </time>
        {entry.source && <span>from {entry.source}</span>}
      </p>
      <QuestionText text={entry.text} className="text-sm" />
      <div className="mt-2.5 flex flex-wrap gap-2">
        {entry.kind === "ask" ? (
          <Link to="/inbox/$item" params={{ item: entry.id }} className="inline-flex h-7 items-center rounded-sm border border-line-2 bg-surface px-2.5 text-xs font-medium hover:bg-hover pointer-coarse:h-10">
            Look at the call and decide
          </Link>
        ) : entry.kind === "file" ? (
          <Button size="sm" disabled={isSending} title="From now on its words count as the team's. Read the file first." onClick={() => decide({ confirm: [entry.id] })}>
            <Check className="size-3.5" /> I have read it: confirm
          </Button>
        ) : (
          isForAll(entry) && (
            <>
              <Button size="sm" disabled={isSending} onClick={() => decide({ confirm: [entry.id] })}>
                <Check className="size-3.5" /> Confirm
              </Button>
              <Button size="sm" variant="ghost" disabled={isSending} onClick={() => decide(isTrigger ? { stop: [entry.id] } : { reject: [entry.id] })}>
                <X className="size-3.5" /> {isTrigger ? "Stop" : "Reject"}
              </Button>
            </>
          )
        )}
      </div>
    </li>
  );
}
