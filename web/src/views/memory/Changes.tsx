/** Changes: the history of agents' knowledge, newest first, with an Undo for each change. */
import { useQueries } from "@tanstack/react-query";
import { History, Undo2 } from "lucide-react";
import { useMemo, useState } from "react";
import { type Agent, api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryKeys } from "@/api/queries";
import { capitalize, fullTime, shortTime } from "@/lib/format";
import { Button, EmptyState, Loading, ErrorPanel } from "@/ui";
import { type Change, undoChange, authorName } from "@/views/memory/knowledge";

const VERB_TEXT: Record<Change["verb"], string> = {
  learned: "learned",
  merged: "merged duplicates",
  superseded: "replaced by something newer",
  removed: "removed",
  confirmed: "confirmed",
  rejected: "rejected",
  expired: "removed what is no longer valid",
  maintained: "tidied up",
};

export function Changes({ members, agentFilter, unconfirmed }: { members: Agent[]; agentFilter: string; unconfirmed: Schemas["UnconfirmedView"][] }) {
  const agents = members.filter((agent) => !agentFilter || agent.id === agentFilter);
  const changes = useQueries({
    queries: agents.flatMap((agent) => [
      { queryKey: queryKeys.changes(agent.id), queryFn: () => unwrap(api.GET("/api/agents/{agent}/changes", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) },
    ]),
    combine: (all) => ({ rows: all.flatMap((one) => one.data ?? []), isPending: agents.length === 0 || all.some((one) => one.isPending), error: all.find((one) => one.error)?.error ?? null }),
  });
  // A change names items by id. The current items supply their texts.
  const known = useQueries({
    queries: agents.flatMap((agent) => [
      { queryKey: queryKeys.insights(agent.id) as readonly string[], queryFn: () => unwrap(api.GET("/api/agents/{agent}/insights", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) as Promise<{ id: string; content: string }[]> },
      { queryKey: queryKeys.memories(agent.id) as readonly string[], queryFn: () => unwrap(api.GET("/api/agents/{agent}/memories", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) as Promise<{ id: string; content: string }[]> },
    ]),
    combine: (all) => all.flatMap((one) => one.data ?? []),
  });
  const textById = useMemo(() => new Map([...known.map((one) => [one.id, one.content] as const), ...unconfirmed.map((one) => [one.id, one.text] as const)]), [known, unconfirmed]);
  const rows = [...changes.rows].sort((a, b) => (a.id < b.id ? 1 : -1));
  const [limit, setLimit] = useState(60);
  const changedTexts = (change: Change): string[] =>
    change.touched.map((one) => textById.get(one.id) ?? (typeof one.before?.content === "string" ? one.before.content : "")).filter(Boolean);
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      {changes.isPending && rows.length === 0 ? (
        <Loading label="Loading the changes" />
      ) : changes.error && rows.length === 0 ? (
        <ErrorPanel title="The changes could not be loaded" detail={errorMessage(changes.error)} />
      ) : rows.length === 0 ? (
        <EmptyState icon={<History />} title="Nothing has changed yet">
          Everything that agents learn, forget or merge is listed here, and can be undone.
        </EmptyState>
      ) : (
        <div className="mx-auto max-w-[820px] p-6 max-md:p-3">
          <ul className="divide-y divide-line">
            {rows.slice(0, limit).map((change) => {
              const agent = members.find((one) => one.id === change.agent_id);
              const author = authorName(change.author, members);
              const texts = changedTexts(change);
              return (
                <li key={change.id} className="flex items-start gap-3 py-3 text-sm">
                  <div className="min-w-0 flex-1">
                    <p>
                      <span className="font-medium">{author}</span> {author === "You" && change.verb === "learned" ? "added" : VERB_TEXT[change.verb]}
                      {agent && author !== capitalize(agent.name) && <span dir="auto" className="text-ink-2"> · {capitalize(agent.name)}</span>}
                      <time dateTime={change.created_at} title={fullTime(change.created_at)} className="ml-2 text-xs text-ink-3">
                        {shortTime(change.created_at)}
                      </time>
                    </p>
                    {texts.slice(0, 3).map((line, at) => (
                      <p key={at} className="line-clamp-2 text-ink-2">
                        {line}
                      </p>
                    ))}
                    {texts.length > 3 && <p className="text-xs text-ink-3">and {texts.length - 3} more</p>}
                  </div>
                  {change.undone_at ? <span className="text-xs text-ink-3">Undone {shortTime(change.undone_at)}</span> : <UndoButton id={change.id} />}
                </li>
              );
            })}
          </ul>
          {rows.length > limit && (
            <Button variant="ghost" onClick={() => setLimit(limit * 3)}>
              {rows.length - limit} older
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

function UndoButton({ id }: { id: string }) {
  const [isPending, setIsPending] = useState(false);
  return (
    <Button
      size="sm"
      disabled={isPending}
      onClick={() => {
        setIsPending(true);
        void undoChange(id).finally(() => setIsPending(false));
      }}
    >
      <Undo2 className="size-3.5" /> Undo
    </Button>
  );
}
