/** Unconfirmed: knowledge from untrusted text. Some of it waits for the person; the rest is used with that mark. */
import { useMutation, type UseQueryResult } from "@tanstack/react-query";
import { Check, ShieldQuestion, X } from "lucide-react";
import { type Agent, api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { invalidateKnowledge } from "@/api/queries";
import { capitalize, fullTime, shortTime } from "@/lib/format";
import { describeSources } from "@/lib/sources";
import { Button, Chip, EmptyState, Loading, ErrorPanel } from "@/ui";
import { Literal, LongText } from "@/reading/Literal";
import { SourceLink } from "@/views/memory/knowledge";
import { ConfirmAll } from "@/parts/ConfirmAll";
import { showToast, showError } from "@/parts/toast";

type UnconfirmedItem = Schemas["UnconfirmedView"];

export function Unconfirmed({ team, members, query }: { team: Team; members: Agent[]; query: UseQueryResult<UnconfirmedItem[]> }) {
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      {query.isPending ? (
        <Loading label="Loading the items that need review" />
      ) : query.isError && !query.data ? (
        <ErrorPanel title="The items that need review could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
      ) : !query.data || query.data.length === 0 ? (
        <EmptyState icon={<ShieldQuestion />} title="Nothing needs review">
          What agents learn from web pages, mail, files and other outside sources is listed here until you confirm or reject it.
        </EmptyState>
      ) : (
        <div className="mx-auto max-w-[820px] p-6 max-md:p-3">
          <p className="mb-2 text-sm text-ink-2">This text comes from outside sources, or from a thread that has read some. Files that you attach or upload are among them: others may have written them. Agents see unverified text with a mark that says so. Text that waits for you is not used until you confirm it.</p>
          <ConfirmAll ids={query.data.map(({ id }) => id)} />
          <ul className="divide-y divide-line">
            {query.data.map((item) => (
              <Item key={item.id} item={item} team={team} agent={members.find((agent) => agent.id === item.agent_id)} />
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function Item({ item, team, agent }: { item: UnconfirmedItem; team: Team; agent: Agent | undefined }) {
  const decide = useMutation({
    mutationFn: async (isTrue: boolean): Promise<boolean> => {
      const params = { path: { item: item.id } };
      if (isTrue) await unwrap(api.POST("/api/knowledge/{item}/confirm", { params }));
      else await unwrap(api.POST("/api/knowledge/{item}/reject", { params }));
      return isTrue;
    },
    onSuccess: (isTrue) => {
      invalidateKnowledge();
      showToast(isTrue ? "Confirmed: agents use it from now on." : "Rejected: it is not used.");
    },
    onError: (error) => showError("Your decision could not be saved", error),
  });
  return (
    <li className="py-3.5 [contain-intrinsic-size:auto_120px] [content-visibility:auto]">
      <LongText id={`words-${item.id}`} text={item.text} label={capitalize(item.kind)} />
      <p className="mt-1.5 flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xs text-ink-3">
        <Chip tone={item.status === "pending" ? "wait" : "plain"}>{item.status === "pending" ? "Waits for you" : "Unverified"}</Chip>
        <span dir="ltr" className="literal">
          <Literal text={capitalize(item.kind)} />
        </span>
        {agent && <span dir="auto">{capitalize(agent.name)}</span>}
        <time dateTime={item.created_at} title={fullTime(item.created_at)}>
          {shortTime(item.created_at)}
        </time>
        {item.sources.length > 0 && (
          <span dir="ltr" className="literal">
            from <Literal text={describeSources(item.sources)} />
          </span>
        )}
        {item.learned_from.map((id) => (
          <SourceLink key={id} team={team.id} id={id} />
        ))}
      </p>
      <div className="mt-2.5 flex gap-2">
        <Button size="sm" disabled={decide.isPending} aria-describedby={`words-${item.id}`} onClick={() => decide.mutate(true)}>
          <Check className="size-3.5" aria-hidden /> Confirm
        </Button>
        <Button size="sm" variant="ghost" disabled={decide.isPending} aria-describedby={`words-${item.id}`} onClick={() => decide.mutate(false)}>
          <X className="size-3.5" aria-hidden /> Reject
        </Button>
      </div>
    </li>
  );
}
