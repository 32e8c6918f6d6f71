/** NodeList: the board as a filtered list, for small screens and for many tasks. A task stands indented below the one it is part of. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { Schemas, WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { plainText } from "@/reading/plainText";
import { waitText } from "@/lib/waitingReason";
import { Avatar, EmptyState, Input, Pills } from "@/ui";
import { useNow } from "@/parts/RelativeTime";
import { isFinished } from "@/lib/endings";
import { cancelledText, elapsed, StatusChip, stopReasonText } from "@/parts/taskStatus";
import type { CardData } from "@/views/board/Card";
import { asTree } from "@/views/tree/tree";

type Filter = "all" | "open" | "you" | "failed" | "done";
const FILTERS = [["all", "All"], ["open", "Open"], ["you", "Waiting for you"], ["failed", "Failed or partial"], ["done", "Done"]] as const;
const MATCHES: Record<Filter, (card: CardData) => boolean> = {
  all: () => true,
  open: ({ node }) => !isFinished(node.status),
  you: ({ displayStatus }) => displayStatus === "asks",
  failed: ({ node }) => node.status === "failed" || node.status === "partial",
  done: ({ node }) => node.status === "completed",
};
/** Deeper tasks are not moved further to the right: their titles need the room. */
const MOST_INDENTED = 6;
const INDENT_PX = 20;

export function NodeList({ stages, cards, selected, onOpen }: { stages: Schemas["StageView"][]; cards: Map<string, CardData>; selected: string | undefined; onOpen: (id: string) => void }) {
  const [filter, setFilter] = useState<Filter>("all");
  const [text, setText] = useState("");
  const now = useNow(1000, [...cards.values()].some(({ node }) => node.status === "running"));
  const stageNames = useMemo(() => new Map(stages.map((stage, index) => [stage.id, `Stage ${index + 1}: ${capitalize(stage.name)}`])), [stages]);
  const rows = useMemo(() => {
    const needle = text.trim().toLowerCase();
    const parts = [...cards.values()].map((card) => ({ id: card.node.id, parent_id: card.node.parent_id, card })).sort((a, b) => (a.id < b.id ? -1 : 1));
    return asTree(parts, ({ card }) => MATCHES[filter](card) && (!needle || `${card.node.title} ${card.node.assignee ?? ""} ${card.node.id}`.toLowerCase().includes(needle)));
  }, [cards, filter, text]);

  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 52,
    getItemKey: (index) => rows[index]!.part.id,
    overscan: 12,
  });

  function onKeyDown(event: KeyboardEvent) {
    const id = (event.target as HTMLElement).dataset.card;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!id || !step || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    const index = rows.findIndex(({ part }) => part.id === id) + step;
    const next = rows[index];
    if (!next) return;
    virtualizer.scrollToIndex(index);
    // The row exists only after the virtualizer has rendered it, so the focus waits for the next frame.
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(next.part.id)}"]`)?.focus());
  }

  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <Pills label="Which work" value={filter} onChange={setFilter} options={FILTERS} />
        <Input type="search" aria-label="Find a task" placeholder="Find by title, name or id" value={text} onChange={(event) => setText(event.target.value)} className="ml-auto h-8 w-56 max-md:ml-0 max-md:w-full" />
      </div>
      {rows.length === 0 ? (
        <EmptyState title="No task matches">Change the filter or the search text to see other tasks of this board.</EmptyState>
      ) : (
        <div ref={scroller} className="scroll min-h-0 flex-1" onKeyDown={onKeyDown} tabIndex={-1}>
          <div className="relative" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map((item) => {
              const row = rows[item.index]!;
              return (
                <div key={item.key} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${item.start}px)`, height: item.size }}>
                  <NodeRow card={row.part.card} depth={row.depth} stage={stageNames.get(row.part.card.node.stage_id ?? "")} isSelected={row.part.id === selected} now={now} onOpen={onOpen} />
                </div>
              );
            })}
          </div>
        </div>
      )}
    </div>
  );
}

interface RowProps {
  card: CardData;
  depth: number;
  stage: string | undefined;
  isSelected: boolean;
  now: number;
  onOpen: (id: string) => void;
}

function NodeRow({ card, depth, stage, isSelected, now, onOpen }: RowProps) {
  const { node, displayStatus, order, isCoordinator, openDependencies } = card;
  return (
    <button
      type="button"
      data-card={node.id}
      aria-pressed={isSelected}
      onClick={() => onOpen(node.id)}
      className={cx("flex size-full items-center gap-3 border-b border-line px-4 text-left text-sm outline-offset-[-2px]", isSelected ? "bg-press" : "hover:bg-hover")}
    >
      <span className="w-[136px] shrink-0 max-md:w-8">
        <StatusChip status={displayStatus} isNarrow />
      </span>
      <span data-depth={depth} className={cx("min-w-0 flex-1", depth > 0 && "border-l border-line-2 pl-2.5")} style={{ marginLeft: Math.min(depth, MOST_INDENTED) * INDENT_PX }}>
        {depth > 0 && <span className="sr-only">Level {depth + 1}: </span>}
        <span dir="auto" className="block truncate font-medium">{node.title}</span>
        <span dir="auto" className="block truncate text-xs text-ink-3">{[stage, secondLine(node, openDependencies)].filter(Boolean).join(" · ")}</span>
      </span>
      {node.assignee && (
        <span className="flex w-32 shrink-0 items-center gap-2 text-xs text-ink-2 max-md:w-auto">
          <Avatar name={node.assignee} order={order} isCoordinator={isCoordinator} className="size-5 rounded-full text-[10px]" />
          <span dir="auto" className="truncate max-md:sr-only">{capitalize(node.assignee)}</span>
        </span>
      )}
      <span className="tabular w-20 shrink-0 text-right text-xs text-ink-2 max-md:hidden">{elapsed(node, now)}</span>
      <span className="tabular w-16 shrink-0 text-right text-xs text-ink-2 max-md:hidden">{node.cost.usd > 0 ? money(node.cost.usd) : ""}</span>
    </button>
  );
}

function secondLine(node: WorkNode, openDependencies: number): string {
  if (node.waiting_reason) return capitalize(waitText(node.waiting_reason));
  if (openDependencies > 0 && node.status === "pending") return `Waits for ${plural(openDependencies, "other task")}`;
  if (node.status === "cancelled") return cancelledText(node);
  return plainText(node.result ?? (stopReasonText(node.stop_reason) || (node.checkpoint ?? node.task))).split("\n", 1)[0]!;
}
