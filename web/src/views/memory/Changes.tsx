/** Changes: how what agents know came about, newest first, each with the way back. */
import { useQueries } from "@tanstack/react-query";
import { History, Undo2 } from "lucide-react";
import { useMemo, useState } from "react";
import { type Agent, api, explain, type Schemas, unwrap } from "@/api/client";
import { keys } from "@/api/queries";
import { capital, fullTime, when } from "@/lib/format";
import { Button, EmptyState, Loading, Trouble } from "@/ui";
import { type Change, undo, whoWords } from "@/views/memory/knowledge";

const VERBS: Record<Change["verb"], string> = {
  learned: "learned",
  merged: "joined what says the same",
  removed: "took back",
  confirmed: "confirmed",
  rejected: "rejected",
  expired: "let go what is no longer valid",
  maintained: "tidied up",
};

export function Changes({ people, who, held }: { people: Agent[]; who: string; held: Schemas["HeldView"][] }) {
  const asked = people.filter((agent) => !who || agent.id === who);
  const found = useQueries({
    queries: asked.flatMap((agent) => [
      { queryKey: keys.changes(agent.id), queryFn: () => unwrap(api.GET("/api/agents/{agent}/changes", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) },
    ]),
    combine: (all) => ({ rows: all.flatMap((one) => one.data ?? []), isPending: asked.length === 0 || all.some((one) => one.isPending), error: all.find((one) => one.error)?.error ?? null }),
  });
  // What is known now gives words to the ids that a change names.
  const known = useQueries({
    queries: asked.flatMap((agent) => [
      { queryKey: keys.insights(agent.id) as readonly string[], queryFn: () => unwrap(api.GET("/api/agents/{agent}/insights", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) as Promise<{ id: string; content: string }[]> },
      { queryKey: keys.memories(agent.id) as readonly string[], queryFn: () => unwrap(api.GET("/api/agents/{agent}/memories", { params: { path: { agent: agent.id }, query: { limit: 500 } } })) as Promise<{ id: string; content: string }[]> },
    ]),
    combine: (all) => all.flatMap((one) => one.data ?? []),
  });
  const words = useMemo(() => new Map([...known.map((one) => [one.id, one.content] as const), ...held.map((one) => [one.id, one.text] as const)]), [known, held]);
  const rows = [...found.rows].sort((a, b) => (a.id < b.id ? 1 : -1));
  const [most, setMost] = useState(60);
  const text = (change: Change): string[] =>
    change.touched.map((one) => words.get(one.id) ?? (typeof one.before?.content === "string" ? one.before.content : "")).filter(Boolean);
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      {found.isPending && rows.length === 0 ? (
        <Loading what="Reflection" />
      ) : found.error && rows.length === 0 ? (
        <Trouble title="The changes could not be loaded" detail={explain(found.error)} />
      ) : rows.length === 0 ? (
        <EmptyState icon={<History />} title="Nothing has changed yet">
          Everything that agents learn, forget or merge is listed here, and can be undone.
        </EmptyState>
      ) : (
        <div className="mx-auto max-w-[820px] p-6 max-md:p-3">
          <ul className="divide-y divide-line">
            {rows.slice(0, most).map((change) => {
              const agent = people.find((one) => one.id === change.agent_id);
              const author = whoWords(change.author, people);
              const about = text(change);
              return (
                <li key={change.id} className="flex items-start gap-3 py-3 text-sm">
                  <div className="min-w-0 flex-1">
                    <p>
                      <span className="font-medium">{author}</span> {author === "You" && change.verb === "learned" ? "told it" : VERBS[change.verb]}
                      {agent && author !== capital(agent.name) && <span className="text-ink-2"> · {capital(agent.name)}</span>}
                      <time dateTime={change.created_at} title={fullTime(change.created_at)} className="ml-2 text-xs text-ink-3">
                        {when(change.created_at)}
                      </time>
                    </p>
                    {about.slice(0, 3).map((line, at) => (
                      <p key={at} className="line-clamp-2 text-ink-2">
                        {line}
                      </p>
                    ))}
                    {about.length > 3 && <p className="text-xs text-ink-3">and {about.length - 3} more</p>}
                  </div>
                  {change.undone_at ? <span className="text-xs text-ink-3">Undone {when(change.undone_at)}</span> : <UndoButton id={change.id} />}
                </li>
              );
            })}
          </ul>
          {rows.length > most && (
            <Button look="plain" onClick={() => setMost(most * 3)}>
              {rows.length - most} older
            </Button>
          )}
        </div>
      )}
    </div>
  );
}

function UndoButton({ id }: { id: string }) {
  const [busy, setBusy] = useState(false);
  return (
    <Button
      size="sm"
      disabled={busy}
      onClick={() => {
        setBusy(true);
        void undo(id).finally(() => setBusy(false));
      }}
    >
      <Undo2 className="size-3.5" /> Undo
    </Button>
  );
}
