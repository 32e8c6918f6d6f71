/** Known: insights and memories, each with its source, and how to take it back. */
import { useMutation, useQueries } from "@tanstack/react-query";
import { Lightbulb, Search, Trash2, UserRound } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type Agent, api, explain, type Schemas, type Team, unwrap } from "@/api/client";
import { keys } from "@/api/queries";
import { capital, fullTime, when } from "@/lib/format";
import { Avatar, Chip, EmptyState, IconButton, Input, Loading, Pills, Trouble } from "@/ui";
import { refresh, Source, tellRemoved, whoWords } from "@/views/memory/knowledge";
import { tellTrouble } from "@/views/shared/toast";

type Insight = Schemas["Insight"];
type Memory = Schemas["Memory"];
interface Props {
  team: Team;
  people: Agent[];
  who: string;
}
const TYPES = [["all", "All"], ["fact", "Facts"], ["technique", "Techniques"], ["pattern", "Patterns"], ["lesson", "Lessons"]] as const;

export function Insights({ team, people, who }: Props) {
  const [type, setType] = useState<(typeof TYPES)[number][0]>("all");
  const [text, setText] = useState("");
  const found = useAll(people, who, (agent) => ({
    queryKey: keys.insights(agent),
    queryFn: () => unwrap(api.GET("/api/agents/{agent}/insights", { params: { path: { agent }, query: { limit: 500 } } })),
  }));
  const shown = matching(found.rows as Insight[], text).filter((one) => type === "all" || one.type === type);
  return (
    <Frame
      found={found}
      what="insights"
      tools={
        <>
          <Pills label="Which kind" value={type} onChange={setType} options={TYPES} />
          <Find value={text} onChange={setText} what="insights" />
        </>
      }
      empty={
        <EmptyState icon={<Lightbulb />} title="Nothing learned yet">
          After its work an agent reflects and keeps what helps next time: facts, techniques, patterns and lessons. You can teach it something
          yourself.
        </EmptyState>
      }
      count={shown.length}
    >
      {shown.map((one) => (
        <Row key={one.id} one={one} team={team} people={people} kind="insight" chip={<Chip>{capital(one.type)}</Chip>} note={one.confidence != null ? `${Math.round(one.confidence * 100)}% sure` : ""} all={found.rows} />
      ))}
    </Frame>
  );
}

export function Memories({ team, people, who }: Props) {
  const [text, setText] = useState("");
  const found = useAll(people, who, (agent) => ({
    queryKey: keys.memories(agent),
    queryFn: () => unwrap(api.GET("/api/agents/{agent}/memories", { params: { path: { agent }, query: { limit: 500 } } })),
  }));
  const shown = matching(found.rows as Memory[], text);
  return (
    <Frame
      found={found}
      what="memories"
      tools={<Find value={text} onChange={setText} what="memories" />}
      empty={
        <EmptyState icon={<UserRound />} title="Nothing about you yet">
          What you tell an agent about yourself and how you like things is kept here, and used when it talks to you. Nothing of it is shown to agents at
          other work.
        </EmptyState>
      }
      count={shown.length}
    >
      {shown.map((one) => (
        <Row key={one.id} one={one} team={team} people={people} kind="memory" all={found.rows} />
      ))}
    </Frame>
  );
}

interface Found {
  rows: (Insight | Memory)[];
  isPending: boolean;
  error: Error | null;
  refetch: () => void;
}

function useAll(people: Agent[], who: string, options: (agent: string) => { queryKey: readonly string[]; queryFn: () => Promise<(Insight | Memory)[]> }): Found {
  return useQueries({
    queries: people.filter((agent) => !who || agent.id === who).map((agent) => options(agent.id)),
    combine: (all) => ({
      rows: all.flatMap((one) => one.data ?? []).filter((one) => one.status === "active").sort((a, b) => (a.created_at < b.created_at ? 1 : -1)),
      isPending: people.length === 0 || all.some((one) => one.isPending),
      error: all.find((one) => one.error)?.error ?? null,
      refetch: () => all.forEach((one) => void one.refetch()),
    }),
  });
}

function matching<T extends { content: string }>(rows: T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => words.every((word) => row.content.toLowerCase().includes(word)));
}

function Find({ value, onChange, what }: { value: string; onChange: (value: string) => void; what: string }) {
  return (
    <div className="relative ml-auto w-60 max-md:ml-0 max-md:w-full">
      <Search className="absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-ink-3" aria-hidden />
      <Input type="search" aria-label={`Find ${what}`} placeholder="Find by its words" value={value} onChange={(event) => onChange(event.target.value)} className="h-8 pl-8" />
    </div>
  );
}

function Frame({ found, what, tools, empty, count, children }: { found: Found; what: string; tools: ReactNode; empty: ReactNode; count: number; children: ReactNode }) {
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      {found.isPending && found.rows.length === 0 ? (
        <Loading what={`Reading the ${what}`} />
      ) : found.error && found.rows.length === 0 ? (
        <Trouble title={`The ${what} could not be loaded`} detail={explain(found.error)} onRetry={found.refetch} />
      ) : found.rows.length === 0 ? (
        empty
      ) : (
        <div className="mx-auto max-w-[820px] p-6 max-md:p-3">
          <div className="mb-3 flex flex-wrap items-center gap-2">{tools}</div>
          {count === 0 ? <p className="py-8 text-center text-sm text-ink-2">None of the {found.rows.length} matches.</p> : <ul className="divide-y divide-line">{children}</ul>}
        </div>
      )}
    </div>
  );
}

function Row({ one, team, people, kind, chip, note = "", all }: { one: Insight | Memory; team: Team; people: Agent[]; kind: "insight" | "memory"; chip?: ReactNode; note?: string; all: (Insight | Memory)[] }) {
  const at = people.findIndex((agent) => agent.id === one.agent_id);
  const agent = people[at];
  const against = one.contradicts ? all.find((other) => other.id === one.contradicts) : undefined;
  const sources = [...new Set([...("source_thread_id" in one && one.source_thread_id ? [one.source_thread_id] : []), ...one.sources])];
  const author = whoWords(one.author, people);
  const remove = useMutation({
    mutationFn: () =>
      kind === "insight"
        ? unwrap(api.DELETE("/api/agents/{agent}/insights/{insight}", { params: { path: { agent: one.agent_id, insight: one.id } } }))
        : unwrap(api.DELETE("/api/agents/{agent}/memories/{memory}", { params: { path: { agent: one.agent_id, memory: one.id } } })),
    onSuccess: () => {
      refresh();
      tellRemoved(one.agent_id, one.id, kind === "insight" ? "The insight was removed." : "The memory was removed.");
    },
    onError: (error) => tellTrouble("The removal failed", error),
  });
  return (
    <li className="flex gap-3 py-3">
      <Avatar name={agent?.name ?? "?"} order={Math.max(0, at)} isCoordinator={agent?.role === "coordinator"} className="mt-0.5 size-7 text-xs" />
      <div className="min-w-0 flex-1">
        <p className="text-sm break-words whitespace-pre-wrap">{one.content}</p>
        <p className="mt-1.5 flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xs text-ink-3">
          {chip}
          <span>{agent ? capital(agent.name) : ""}</span>
          <time dateTime={one.created_at} title={fullTime(one.created_at)}>
            {when(one.created_at)}
          </time>
          {one.author !== one.agent_id && <span>from {author === "You" ? "you" : author}</span>}
          {note && <span>{note}</span>}
          {one.valid_until && <span>until {fullTime(one.valid_until)}</span>}
          {sources.slice(0, 3).map((id) => (
            <Source key={id} team={team.id} id={id} />
          ))}
        </p>
        {one.contradicts && (
          <p className="mt-1.5 rounded-sm bg-wait-bg px-2 py-1 text-xs text-wait">Cannot be true together with: {against?.content ?? "something it knew before"}</p>
        )}
      </div>
      <IconButton label={kind === "insight" ? "Take it back" : "Forget it"} disabled={remove.isPending} onClick={() => remove.mutate()}>
        <Trash2 className="size-4" />
      </IconButton>
    </li>
  );
}
