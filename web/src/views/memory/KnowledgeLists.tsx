/** KnowledgeLists: the tabs of insights and of memories, each item with its source and a remove button. */
import { useMutation, useQueries } from "@tanstack/react-query";
import { Lightbulb, Search, Trash2, UserRound } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type Agent, api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { invalidateKnowledge, queryKeys } from "@/api/queries";
import { capitalize, fullTime, shortTime } from "@/lib/format";
import { Avatar, Chip, EmptyState, IconButton, Input, Loading, Pills, ErrorPanel } from "@/ui";
import { SourceLink, showRemoved, authorName } from "@/views/memory/knowledge";
import { showError } from "@/parts/toast";

type Insight = Schemas["Insight"];
type Memory = Schemas["Memory"];
interface Props {
  team: Team;
  members: Agent[];
  agentFilter: string;
}
const TYPES = [["all", "All"], ["fact", "Facts"], ["technique", "Techniques"], ["pattern", "Patterns"], ["lesson", "Lessons"]] as const;

export function Insights({ team, members, agentFilter }: Props) {
  const [type, setType] = useState<(typeof TYPES)[number][0]>("all");
  const [text, setText] = useState("");
  const query = useKnowledge(members, agentFilter, (agent) => ({
    queryKey: queryKeys.insights(agent),
    queryFn: () => unwrap(api.GET("/api/agents/{agent}/insights", { params: { path: { agent }, query: { limit: 500 } } })),
  }));
  const shown = filterByText(query.rows as Insight[], text).filter((item) => type === "all" || item.type === type);
  return (
    <ListFrame
      query={query}
      plural="insights"
      filters={
        <>
          <Pills label="Which kind" value={type} onChange={setType} options={TYPES} />
          <SearchBox value={text} onChange={setText} plural="insights" />
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
      {shown.map((item) => (
        <KnowledgeItem key={item.id} item={item} team={team} members={members} kind="insight" chip={<Chip>{capitalize(item.type)}</Chip>} note={item.confidence != null ? `${Math.round(item.confidence * 100)}% sure` : ""} all={query.rows} />
      ))}
    </ListFrame>
  );
}

export function Memories({ team, members, agentFilter }: Props) {
  const [text, setText] = useState("");
  const query = useKnowledge(members, agentFilter, (agent) => ({
    queryKey: queryKeys.memories(agent),
    queryFn: () => unwrap(api.GET("/api/agents/{agent}/memories", { params: { path: { agent }, query: { limit: 500 } } })),
  }));
  const shown = filterByText(query.rows as Memory[], text);
  return (
    <ListFrame
      query={query}
      plural="memories"
      filters={<SearchBox value={text} onChange={setText} plural="memories" />}
      empty={
        <EmptyState icon={<UserRound />} title="Nothing about you yet">
          What you tell an agent about yourself and how you like things is kept here, and used when it talks to you. It is not used for
          other work.
        </EmptyState>
      }
      count={shown.length}
    >
      {shown.map((item) => (
        <KnowledgeItem key={item.id} item={item} team={team} members={members} kind="memory" all={query.rows} />
      ))}
    </ListFrame>
  );
}

interface KnowledgeQuery {
  rows: (Insight | Memory)[];
  isPending: boolean;
  error: Error | null;
  refetch: () => void;
}

function useKnowledge(members: Agent[], agentFilter: string, options: (agent: string) => { queryKey: readonly string[]; queryFn: () => Promise<(Insight | Memory)[]> }): KnowledgeQuery {
  return useQueries({
    queries: members.filter((agent) => !agentFilter || agent.id === agentFilter).map((agent) => options(agent.id)),
    combine: (all) => ({
      rows: all.flatMap((item) => item.data ?? []).filter((item) => item.status === "active").sort((a, b) => (a.created_at < b.created_at ? 1 : -1)),
      isPending: members.length === 0 || all.some((item) => item.isPending),
      error: all.find((item) => item.error)?.error ?? null,
      refetch: () => all.forEach((item) => void item.refetch()),
    }),
  });
}

function filterByText<T extends { content: string }>(rows: T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => words.every((word) => row.content.toLowerCase().includes(word)));
}

function SearchBox({ value, onChange, plural }: { value: string; onChange: (value: string) => void; plural: string }) {
  return (
    <div className="relative ml-auto w-60 max-md:ml-0 max-md:w-full">
      <Search className="absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-ink-3" aria-hidden />
      <Input type="search" aria-label={`Find ${plural}`} placeholder="Find by text" value={value} onChange={(event) => onChange(event.target.value)} className="h-8 pl-8" />
    </div>
  );
}

function ListFrame({ query, plural, filters, empty, count, children }: { query: KnowledgeQuery; plural: string; filters: ReactNode; empty: ReactNode; count: number; children: ReactNode }) {
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      {query.isPending && query.rows.length === 0 ? (
        <Loading label={`Loading the ${plural}`} />
      ) : query.error && query.rows.length === 0 ? (
        <ErrorPanel title={`The ${plural} could not be loaded`} detail={errorMessage(query.error)} onRetry={query.refetch} />
      ) : query.rows.length === 0 ? (
        empty
      ) : (
        <div className="mx-auto max-w-[820px] p-6 max-md:p-3">
          <div className="mb-3 flex flex-wrap items-center gap-2">{filters}</div>
          {count === 0 ? <p className="py-8 text-center text-sm text-ink-2">None of the {query.rows.length} items matches your search.</p> : <ul className="divide-y divide-line">{children}</ul>}
        </div>
      )}
    </div>
  );
}

function KnowledgeItem({ item, team, members, kind, chip, note = "", all }: { item: Insight | Memory; team: Team; members: Agent[]; kind: "insight" | "memory"; chip?: ReactNode; note?: string; all: (Insight | Memory)[] }) {
  const order = members.findIndex((agent) => agent.id === item.agent_id);
  const agent = members[order];
  const contradicted = item.contradicts ? all.find((other) => other.id === item.contradicts) : undefined;
  const sources = [...new Set([...("source_thread_id" in item && item.source_thread_id ? [item.source_thread_id] : []), ...item.sources])];
  const author = authorName(item.author, members);
  const remove = useMutation({
    mutationFn: () =>
      kind === "insight"
        ? unwrap(api.DELETE("/api/agents/{agent}/insights/{insight}", { params: { path: { agent: item.agent_id, insight: item.id } } }))
        : unwrap(api.DELETE("/api/agents/{agent}/memories/{memory}", { params: { path: { agent: item.agent_id, memory: item.id } } })),
    onSuccess: () => {
      invalidateKnowledge();
      showRemoved(item.agent_id, item.id, kind === "insight" ? "The insight was removed." : "The memory was removed.");
    },
    onError: (error) => showError(kind === "insight" ? "The insight could not be removed" : "The memory could not be removed", error),
  });
  return (
    <li className="flex gap-3 py-3">
      <Avatar name={agent?.name ?? "?"} order={Math.max(0, order)} isCoordinator={agent?.role === "coordinator"} className="mt-0.5 size-7 text-xs" />
      <div className="min-w-0 flex-1">
        <p dir="auto" className="text-sm break-words whitespace-pre-wrap">{item.content}</p>
        <p className="mt-1.5 flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xs text-ink-3">
          {chip}
          <span dir="auto">{agent ? capitalize(agent.name) : ""}</span>
          <time dateTime={item.created_at} title={fullTime(item.created_at)}>
            {shortTime(item.created_at)}
          </time>
          {item.author !== item.agent_id && <span>from {author === "You" ? "you" : author}</span>}
          {note && <span>{note}</span>}
          {item.valid_until && <span>until {fullTime(item.valid_until)}</span>}
          {sources.slice(0, 3).map((id) => (
            <SourceLink key={id} team={team.id} id={id} />
          ))}
        </p>
        {item.contradicts && (
          <p dir="auto" className="mt-1.5 rounded-sm bg-wait-bg px-2 py-1 text-xs text-wait">Contradicts: {contradicted?.content ?? "an item that is no longer there"}</p>
        )}
      </div>
      <IconButton label={kind === "insight" ? "Remove this insight" : "Remove this memory"} disabled={remove.isPending} onClick={() => remove.mutate()}>
        <Trash2 className="size-4" />
      </IconButton>
    </li>
  );
}
