/** NodeList: the board as a filtered list, for small screens and for many tasks. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { plainText } from "@/reading/plainText";
import { waitText } from "@/lib/waitingReason";
import { Avatar, EmptyState, Input, Pills } from "@/ui";
import { useNow } from "@/parts/RelativeTime";
import { isFinished } from "@/lib/endings";
import { elapsed, StatusChip, stopReasonText } from "@/parts/taskStatus";
import type { CardData } from "@/views/board/Card";
import type { Lane, BoardLayout } from "@/views/board/layout";

type Filter = "all" | "open" | "you" | "failed" | "done";
const FILTERS = [["all", "All"], ["open", "Open"], ["you", "Waiting for you"], ["failed", "Failed or partial"], ["done", "Done"]] as const;
const MATCHES: Record<Filter, (card: CardData) => boolean> = {
  all: () => true,
  open: ({ node }) => !isFinished(node.status),
  you: ({ displayStatus }) => displayStatus === "asks",
  failed: ({ node }) => node.status === "failed" || node.status === "partial",
  done: ({ node }) => node.status === "completed",
};
type Row = { kind: "lane"; lane: Lane; count: number } | { kind: "node"; card: CardData };

export function NodeList({ layout, cards, selected, onOpen }: { layout: BoardLayout; cards: Map<string, CardData>; selected: string | undefined; onOpen: (id: string) => void }) {
  const [filter, setFilter] = useState<Filter>("all");
  const [text, setText] = useState("");
  const now = useNow(1000, [...cards.values()].some(({ node }) => node.status === "running"));
  const rows = useMemo(() => {
    const needle = text.trim().toLowerCase();
    const rows: Row[] = [];
    for (const lane of layout.lanes) {
      const matching = lane.nodeIds
        .map((id) => cards.get(id))
        .filter((card): card is CardData => card !== undefined && MATCHES[filter](card) && (!needle || `${card.node.title} ${card.node.assignee ?? ""} ${card.node.id}`.toLowerCase().includes(needle)));
      if (matching.length > 0) rows.push({ kind: "lane", lane, count: matching.length }, ...matching.map((card): Row => ({ kind: "node", card })));
    }
    return rows;
  }, [layout, cards, filter, text]);

  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (rows[index]!.kind === "lane" ? 40 : 52),
    getItemKey: (index) => {
      const row = rows[index]!;
      return row.kind === "lane" ? `lane:${row.lane.id}` : row.card.node.id;
    },
    overscan: 12,
  });

  function onKeyDown(event: KeyboardEvent) {
    const id = (event.target as HTMLElement).dataset.card;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!id || !step || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    let index = rows.findIndex((row) => row.kind === "node" && row.card.node.id === id) + step;
    while (rows[index]?.kind === "lane") index += step;
    const next = rows[index];
    if (next?.kind !== "node") return;
    virtualizer.scrollToIndex(index);
    // The row exists only after the virtualizer has rendered it, so the focus waits for the next frame.
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(next.card.node.id)}"]`)?.focus());
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
                  {row.kind === "lane" ? (
                    <h2 dir="auto" className="flex h-full items-end gap-2 px-4 pb-1.5 text-sm font-semibold">
                      {capitalize(row.lane.title)}
                      {row.lane.number > 0 && <span className="text-xs font-normal text-ink-3">Stage {row.lane.number}</span>}
                      <span className="tabular text-xs font-normal text-ink-3">{row.count}</span>
                    </h2>
                  ) : (
                    <NodeRow card={row.card} isSelected={row.card.node.id === selected} now={now} onOpen={onOpen} />
                  )}
                </div>
              );
            })}
          </div>
        </div>
      )}
    </div>
  );
}

function NodeRow({ card, isSelected, now, onOpen }: { card: CardData; isSelected: boolean; now: number; onOpen: (id: string) => void }) {
  const { node, displayStatus, order, isCoordinator, openDependencies } = card;
  return (
    <button
      type="button"
      data-card={node.id}
      aria-pressed={isSelected}
      onClick={() => onOpen(node.id)}
      className={cx("flex size-full items-center gap-3 border-b border-line px-4 text-left text-sm outline-offset-[-2px] hover:bg-hover", isSelected && "bg-press hover:bg-press")}
    >
      <span className="w-[136px] shrink-0 max-md:w-auto">
        <StatusChip status={displayStatus} />
      </span>
      <span className="min-w-0 flex-1">
        <span dir="auto" className="block truncate font-medium">{node.title}</span>
        <span dir="auto" className="block truncate text-xs text-ink-3">{secondLine(node, openDependencies)}</span>
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
  return plainText(node.result ?? (stopReasonText(node.stop_reason) || (node.checkpoint ?? node.task))).split("\n", 1)[0]!;
}
