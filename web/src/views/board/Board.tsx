/** Board: who gave which task to whom in a team, as a picture of the tree or as a list. */
import { useQuery } from "@tanstack/react-query";
import { LayoutList, Workflow } from "lucide-react";
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { errorMessage } from "@/api/client";
import { agentsQuery, stagesQuery } from "@/api/queries";
import { plural } from "@/lib/format";
import { useOpenItems } from "@/parts/unanswered";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { EmptyState, Loading, Sheet, ErrorPanel } from "@/ui";
import { cx } from "@/lib/cx";
import type { ScreenProps } from "@/lib/screens";
import { useSearchParams } from "@/parts/useSearchParams";
import { displayStatusOf } from "@/parts/taskStatus";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import type { CardData } from "@/views/board/Card";
import { TaskDetail } from "@/views/board/TaskDetail";
import { progressOf, useFolds } from "@/views/tree/folds";
import { layoutTree, type TreeLayout } from "@/views/tree/layout";
import { NodeList } from "@/views/board/NodeList";
import { type StackableNode, stackAlike } from "@/views/tree/stacks";
import { useBoard } from "@/views/board/useBoard";

const Graph = lazyChunk(() => import("@/views/board/Graph"));

export default function Board({ team }: ScreenProps) {
  const board = useBoard(team.id);
  const stages = useQuery(stagesQuery(team.id));
  const agents = useQuery(agentsQuery(team.id));
  const unanswered = useOpenItems(team.id);
  const [params, setParams] = useSearchParams();
  const isPhone = useNarrow(768);
  const hasNoSidePanel = useNarrow(FOLD_PX);
  const view = params.view ?? (isPhone ? "list" : "graph");

  const nodes = board.data;
  const shape = useShape(view === "graph" ? (nodes ?? NONE) : NONE);
  const stacked = useMemo(() => stackAlike(shape), [shape]);
  // Cards that did not change keep their identity: the memoized card components are not rendered again.
  const known = useRef<{ first: Set<string>; cards: Map<string, CardData> } | null>(null);
  const cards = useMemo(() => {
    if (!nodes) return new Map<string, CardData>();
    const asking = new Set(unanswered.flatMap((item) => [item.message.node_id, ...item.waiting_work.map((work) => work.node_id)]));
    const members = new Map((agents.data ?? []).map((agent, order) => [agent.id, { order, isCoordinator: agent.role === "coordinator" }]));
    const done = new Set(nodes.filter((node) => node.status === "completed").map((node) => node.id));
    const ids = new Set(nodes.map((node) => node.id));
    known.current ??= { first: ids, cards: new Map() };
    const { first, cards: before } = known.current;
    const next = new Map<string, CardData>();
    for (const node of nodes) {
      const assignee = members.get(node.assignee_id ?? "");
      const card: CardData = {
        node,
        displayStatus: displayStatusOf(node, asking.has(node.id)),
        openDependencies: node.depends_on.filter((id) => ids.has(id) && !done.has(id)).length,
        order: assignee?.order ?? 0,
        isCoordinator: assignee?.isCoordinator ?? false,
        isNew: !first.has(node.id),
      };
      const old = before.get(node.id);
      const isSame = old && old.node === node && old.displayStatus === card.displayStatus && old.openDependencies === card.openDependencies && old.order === card.order && old.isCoordinator === card.isCoordinator;
      next.set(node.id, isSame ? old : card);
    }
    known.current.cards = next;
    return next;
  }, [nodes, agents.data, unanswered]);

  const { tree, fold } = useFolds(team.id, stacked.nodes, stacked.stacks, (id) => progressOf(cards.get(id)?.node));
  // The layout keeps the columns of before, so that a card does not move when others are added. To fold or unfold all of it makes another picture.
  const before = useRef<{ team: string; columns: TreeLayout["columns"] } | undefined>(undefined);
  const layout = useMemo(() => {
    const next = layoutTree(tree.nodes, stages.data ?? [], before.current?.team === team.id ? before.current.columns : undefined);
    before.current = { team: team.id, columns: next.columns };
    return next;
  }, [tree, stages.data, team.id]);

  const foldSome = useCallback(
    (ids: readonly string[], isFolded: boolean) => {
      if (ids.length > 1) before.current = undefined;
      fold(ids, isFolded);
    },
    [fold],
  );

  const open = useCallback((id: string) => setParams({ node: id }), [setParams]);
  // Closing the details returns the focus to the card that opened them, for people who use the keyboard.
  const close = useCallback(() => {
    const id = params.node;
    setParams({ node: undefined });
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-card="${CSS.escape(id ?? "")}"]`)?.focus());
  }, [setParams, params.node]);
  useEscape(params.node !== undefined, close);

  // Screen readers cannot read the graph, so the number of tasks is announced.
  const [announcement, setAnnouncement] = useState("");
  useEffect(() => {
    if (nodes) setAnnouncement(`${plural(nodes.length, "task")} on the board`);
  }, [nodes]);

  const stageCount = new Set(nodes?.flatMap((node) => node.stage_id ?? [])).size;
  const running = nodes?.filter((node) => node.status === "running").length ?? 0;
  const facts = nodes && nodes.length > 0 ? [plural(nodes.length, "task", "tasks"), stageCount > 0 && plural(stageCount, "stage"), running > 0 && `${running} running`] : [];
  const detail = params.node ? <TaskDetail id={params.node} cards={cards} stages={stages.data ?? []} onOpen={open} onClose={close} team={team} /> : null;

  return (
    <>
      <ScreenHeader team={team} title="Board" facts={facts}>
        <div role="group" aria-label="How to show it" className="flex rounded-sm border border-line-2 p-0.5">
          {(
            [
              ["graph", "Graph", Workflow],
              ["list", "List", LayoutList],
            ] as const
          ).map(([name, label, Icon]) => (
            <button
              key={name}
              type="button"
              aria-pressed={view === name}
              onClick={() => setParams({ view: name }, true)}
              className={cx("flex h-7 items-center gap-1.5 rounded-xs px-2.5 text-xs font-medium pointer-coarse:h-10", view === name ? "bg-press" : "text-ink-2 hover:bg-hover")}
            >
              <Icon className="size-3.5" aria-hidden /> {label}
            </button>
          ))}
        </div>
      </ScreenHeader>
      <p dir="auto" className="sr-only" role="status">
        {announcement}
      </p>
      <div className="flex min-h-0 flex-1">
        <div className="min-w-0 flex-1">
          {board.isPending ? (
            <Loading label="Loading the board" />
          ) : board.isError && !nodes ? (
            <ErrorPanel title="The board could not be loaded" detail={errorMessage(board.error)} onRetry={() => void board.refetch()} />
          ) : !nodes || nodes.length === 0 ? (
            <EmptyState icon={<Workflow />} title="No work yet">
              As soon as the coordinator plans, every task appears here as a card in its stage, with its agent, its dependencies and its
              cost. Tell the coordinator what you want done.
            </EmptyState>
          ) : view === "list" ? (
            <NodeList stages={stages.data ?? []} cards={cards} selected={params.node} onOpen={open} />
          ) : (
            <Suspense fallback={<Loading label="Drawing the board" />}>
              <Graph layout={layout} tree={tree} cards={cards} stacks={stacked.stacks} selected={params.node} onOpen={open} onFold={foldSome} />
            </Suspense>
          )}
        </div>
        {detail && !hasNoSidePanel && (
          <aside aria-label="Task" className="flex w-[420px] shrink-0 flex-col border-l border-line bg-canvas">
            {detail}
          </aside>
        )}
      </div>
      {hasNoSidePanel && (
        <Sheet open={detail !== null} onOpenChange={(now) => now || close()} side="right" title="Task" className="w-[min(460px,100vw)] bg-canvas">
          {detail}
        </Sheet>
      )}
    </>
  );
}

const NONE: StackableNode[] = [];

/** Return the tasks of before while only what is not drawn from their places has changed, such as their status. */
function useShape(nodes: readonly StackableNode[]): readonly StackableNode[] {
  const known = useRef(nodes);
  const isSame = nodes.length === known.current.length && nodes.every((node, at) => isAlike(node, known.current[at]!));
  if (!isSame) known.current = nodes;
  return known.current;
}

const isAlike = (a: StackableNode, b: StackableNode): boolean =>
  a === b || (a.id === b.id && a.parent_id === b.parent_id && a.stage_id === b.stage_id && a.title === b.title && a.depends_on === b.depends_on);

function useEscape(isActive: boolean, action: () => void): void {
  useEffect(() => {
    if (!isActive) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [role=dialog], [role=menu]");
      if (event.key === "Escape" && !inField) action();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [isActive, action]);
}
