/** Memory: a team's notes, its agents' insights and memories, items that need review, and the history of changes. */
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { Suspense, useState } from "react";
import { api, unwrap } from "@/api/client";
import { agentsQuery, queryKeys } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { lazyChunk } from "@/live/chunks";
import { Button, Loading, Pills } from "@/ui";
import type { ScreenProps } from "@/lib/screens";
import { useSearchParams } from "@/parts/useSearchParams";
import { AddKnowledge } from "@/views/memory/AddKnowledge";
import { Changes } from "@/views/memory/Changes";
import { Insights, Memories } from "@/views/memory/KnowledgeLists";
import { Notes } from "@/views/memory/Notes";
import { Unconfirmed } from "@/views/memory/Unconfirmed";

const PageText = lazyChunk(() => import("@/views/memory/PageText"));

type Tab = "notes" | "insights" | "memories" | "unconfirmed" | "changes";

export default function Memory({ team, rest }: ScreenProps) {
  const [params, setParams] = useSearchParams();
  const tab = (rest ? "notes" : (params.tab ?? "notes")) as Tab;
  const agents = useQuery(agentsQuery(team.id));
  const unconfirmed = useQuery({ queryKey: queryKeys.unconfirmed(team.id), queryFn: () => unwrap(api.GET("/api/teams/{team}/unconfirmed", { params: { path: { team: team.id } } })) });
  const [isAdding, setIsAdding] = useState(false);
  const members = agents.data ?? [];
  const waiting = unconfirmed.data?.length ?? 0;
  const agentFilter = params.agent ?? "";
  const hasAgentFilter = tab === "insights" || tab === "memories" || tab === "changes";
  return (
    <>
      <ScreenHeader team={team} title="Memory">
        {(tab === "insights" || tab === "memories") && (
          <Button variant="primary" onClick={() => setIsAdding(true)} disabled={members.length === 0}>
            <Plus className="size-4" /> {tab === "insights" ? "Add an insight" : "Add a memory"}
          </Button>
        )}
      </ScreenHeader>
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <Pills
          label="What kind"
          value={tab}
          onChange={(now) => setParams({ page: undefined, tab: !rest && now === "notes" ? undefined : now })}
          options={[
            ["notes", "Notes"],
            ["insights", "Insights"],
            ["memories", "About you"],
            ["unconfirmed", waiting > 0 ? `Needs review (${waiting})` : "Needs review"],
            ["changes", "Changes"],
          ]}
        />
        {hasAgentFilter && (
          <select aria-label="Whose" value={agentFilter} onChange={(event) => setParams({ agent: event.target.value || undefined }, true)} className="ml-auto h-8 rounded-sm border border-control bg-surface px-2 text-sm max-md:ml-0 max-md:w-full pointer-coarse:h-11">
            <option value="">Everyone's</option>
            {members.map((agent) => (
              <option key={agent.id} value={agent.id}>
                {capitalize(agent.name)}
              </option>
            ))}
          </select>
        )}
      </div>
      {tab === "notes" && params.page && (
        <Suspense fallback={<Loading label="Opening the page" />}>
          <PageText team={team.id} url={params.page} />
        </Suspense>
      )}
      {tab === "notes" && !params.page && <Notes team={team} path={rest} />}
      {tab === "insights" && <Insights team={team} members={members} agentFilter={agentFilter} />}
      {tab === "memories" && <Memories team={team} members={members} agentFilter={agentFilter} />}
      {tab === "unconfirmed" && <Unconfirmed team={team} members={members} query={unconfirmed} />}
      {tab === "changes" && <Changes members={members} agentFilter={agentFilter} unconfirmed={unconfirmed.data ?? []} />}
      {isAdding && <AddKnowledge kind={tab === "memories" ? "memory" : "insight"} members={members.filter((agent) => agent.retired_at === null)} agentFilter={agentFilter} onClose={() => setIsAdding(false)} />}
    </>
  );
}
