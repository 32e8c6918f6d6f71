/** Board: a team's work by stage, as it grows. */
import { useQuery } from "@tanstack/react-query";
import { LayoutList, Workflow } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { explain } from "@/api/client";
import { agentsQuery, inboxQuery, stagesQuery } from "@/api/queries";
import { plural } from "@/lib/format";
import { needsYou } from "@/shell/unanswered";
import { RailButton } from "@/shell/Home";
import { EmptyState, Header, Loading, Sheet, Trouble } from "@/ui";
import { cx } from "@/lib/cx";
import type { ScreenProps } from "@/views";
import { usePlace } from "@/views/shared/useSearchParams";
import { useNarrow } from "@/views/shared/useNarrow";
import type { Shown } from "@/views/board/Card";
import { Detail } from "@/views/board/TaskDetail";
import { layout } from "@/views/board/layout";
import { NodeList } from "@/views/board/NodeList";
import { useBoard } from "@/views/board/useBoard";

const Graph = lazy(() => import("@/views/board/Graph"));

export default function Board({ team }: ScreenProps) {
  const board = useBoard(team.id);
  const stages = useQuery(stagesQuery(team.id));
  const agents = useQuery(agentsQuery(team.id));
  const inbox = useQuery(inboxQuery);
  const [place, go] = usePlace();
  const isPhone = useNarrow(768);
  const isTight = useNarrow(1100);
  const view = place.view ?? (isPhone ? "list" : "graph");

  const nodes = board.data;
  const order = useRef<Map<string, string[]> | undefined>(undefined);
  const plan = useMemo(() => {
    const made = layout(nodes ?? [], stages.data ?? [], order.current);
    order.current = made.order;
    return made;
  }, [nodes, stages.data]);

  const known = useRef<{ first: Set<string>; shown: Map<string, Shown> } | null>(null);
  const shown = useMemo(() => {
    if (!nodes) return new Map<string, Shown>();
    const asking = new Set(needsYou(inbox.data?.items).map((item) => item.message.node_id));
    const people = new Map((agents.data ?? []).map((agent, at) => [agent.id, { at, isCoordinator: agent.role === "coordinator" }]));
    const done = new Set(nodes.filter((node) => node.status === "completed").map((node) => node.id));
    const ids = new Set(nodes.map((node) => node.id));
    known.current ??= { first: ids, shown: new Map() };
    const { first, shown: before } = known.current;
    const next = new Map<string, Shown>();
    for (const node of nodes) {
      const who = people.get(node.assignee_id ?? "");
      const one: Shown = {
        node,
        standing: node.status === "waiting" && asking.has(node.id) ? "asks" : node.status,
        open: node.depends_on.filter((id) => ids.has(id) && !done.has(id)).length,
        order: who?.at ?? 0,
        isCoordinator: who?.isCoordinator ?? false,
        isFresh: !first.has(node.id),
      };
      const old = before.get(node.id);
      const isSame = old && old.node === node && old.standing === one.standing && old.open === one.open && old.order === one.order && old.isCoordinator === one.isCoordinator;
      next.set(node.id, isSame ? old : one);
    }
    known.current.shown = next;
    return next;
  }, [nodes, agents.data, inbox.data]);

  const open = useCallback((id: string) => go({ node: id }), [go]);
  const close = useCallback(() => {
    const id = place.node;
    go({ node: undefined });
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-card="${CSS.escape(id ?? "")}"]`)?.focus());
  }, [go, place.node]);
  useEscape(place.node !== undefined, close);

  // The list is what everybody can read; the picture needs a screen.
  const [hasAnnounced, setAnnounced] = useState("");
  useEffect(() => {
    if (nodes) setAnnounced(`${plural(nodes.length, "piece")} of work`);
  }, [nodes]);

  const stageCount = plan.lanes.filter((lane) => lane.kind === "stage").length;
  const running = nodes?.filter((node) => node.status === "running").length ?? 0;
  const subtitle = nodes && nodes.length > 0 ? [team.name, plural(nodes.length, "task", "tasks"), stageCount > 0 && plural(stageCount, "stage"), running > 0 && `${running} running`].filter(Boolean).join(" · ") : team.name;
  const detail = place.node ? <Detail id={place.node} shown={shown} stages={stages.data ?? []} onOpen={open} onClose={close} team={team} /> : null;

  return (
    <>
      <Header lead={<RailButton />} title="Board" subtitle={subtitle}>
        <div role="group" aria-label="How to show it" className="flex rounded-sm border border-line-2 p-0.5">
          {(
            [
              ["graph", "Graph", Workflow],
              ["list", "List", LayoutList],
            ] as const
          ).map(([name, words, Icon]) => (
            <button
              key={name}
              type="button"
              aria-pressed={view === name}
              onClick={() => go({ view: name }, true)}
              className={cx("flex h-7 items-center gap-1.5 rounded-xs px-2.5 text-xs font-medium pointer-coarse:h-10", view === name ? "bg-press" : "text-ink-2 hover:bg-hover")}
            >
              <Icon className="size-3.5" aria-hidden /> {words}
            </button>
          ))}
        </div>
      </Header>
      <p className="sr-only" role="status">
        {hasAnnounced}
      </p>
      <div className="flex min-h-0 flex-1">
        <div className="min-w-0 flex-1">
          {board.isPending ? (
            <Loading what="Loading the board" />
          ) : board.isError && !nodes ? (
            <Trouble title="The board could not be loaded" detail={explain(board.error)} onRetry={() => void board.refetch()} />
          ) : !nodes || nodes.length === 0 ? (
            <EmptyState icon={<Workflow />} title="No work yet">
              As soon as the coordinator plans, every task appears here as a card, in the stage it belongs to, with who does it, what it
              waits for and what it costs. Tell the coordinator what you want to see it happen.
            </EmptyState>
          ) : view === "list" ? (
            <NodeList plan={plan} shown={shown} selected={place.node} onOpen={open} />
          ) : (
            <Suspense fallback={<Loading what="Drawing the board" />}>
              <Graph plan={plan} shown={shown} selected={place.node} onOpen={open} />
            </Suspense>
          )}
        </div>
        {detail && !isTight && (
          <aside aria-label="Task" className="flex w-[420px] shrink-0 flex-col border-l border-line bg-canvas">
            {detail}
          </aside>
        )}
      </div>
      {isTight && (
        <Sheet open={detail !== null} onOpenChange={(now) => now || close()} side="right" title="Task" className="w-[min(460px,100vw)] bg-canvas">
          {detail}
        </Sheet>
      )}
    </>
  );
}

function useEscape(isOn: boolean, act: () => void): void {
  useEffect(() => {
    if (!isOn) return;
    const hear = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [role=dialog], [role=menu]");
      if (event.key === "Escape" && !inField) act();
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, [isOn, act]);
}
