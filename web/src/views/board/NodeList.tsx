/** The board as a list: for many tasks, for small screens, and for finding one. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capital, money } from "@/lib/format";
import { Avatar, EmptyState, Input, Pills } from "@/ui";
import { useNow } from "@/views/shared/RelativeTime";
import { elapsed, isOver, StandingChip, stopWords } from "@/views/shared/taskStatus";
import type { Shown } from "@/views/board/Card";
import type { Lane, Layout } from "@/views/board/layout";

type Filter = "all" | "open" | "you" | "failed" | "done";
const FILTERS = [["all", "All"], ["open", "Open"], ["you", "Waiting for you"], ["failed", "Failed"], ["done", "Done"]] as const;
const MATCHES: Record<Filter, (one: Shown) => boolean> = {
  all: () => true,
  open: ({ node }) => !isOver(node.status),
  you: ({ standing }) => standing === "asks",
  failed: ({ node }) => node.status === "failed",
  done: ({ node }) => node.status === "completed",
};
type Row = { kind: "lane"; lane: Lane; count: number } | { kind: "node"; one: Shown };

export function NodeList({ plan, shown, selected, onOpen }: { plan: Layout; shown: Map<string, Shown>; selected: string | undefined; onOpen: (id: string) => void }) {
  const [filter, setFilter] = useState<Filter>("all");
  const [text, setText] = useState("");
  const now = useNow(1000, [...shown.values()].some(({ node }) => node.status === "running"));
  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const found: Row[] = [];
    for (const lane of plan.lanes) {
      const here = lane.pieces
        .map((id) => shown.get(id))
        .filter((one): one is Shown => one !== undefined && MATCHES[filter](one) && (!wanted || `${one.node.title} ${one.node.assignee ?? ""} ${one.node.id}`.toLowerCase().includes(wanted)));
      if (here.length > 0) found.push({ kind: "lane", lane, count: here.length }, ...here.map((one): Row => ({ kind: "node", one })));
    }
    return found;
  }, [plan, shown, filter, text]);

  const frame = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: (at) => (rows[at]!.kind === "lane" ? 40 : 52),
    getItemKey: (at) => {
      const row = rows[at]!;
      return row.kind === "lane" ? `lane:${row.lane.id}` : row.one.node.id;
    },
    overscan: 12,
  });

  function onKeyDown(event: KeyboardEvent) {
    const id = (event.target as HTMLElement).dataset.card;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!id || !step || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    let at = rows.findIndex((row) => row.kind === "node" && row.one.node.id === id) + step;
    while (rows[at]?.kind === "lane") at += step;
    const next = rows[at];
    if (next?.kind !== "node") return;
    list.scrollToIndex(at);
    requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(next.one.node.id)}"]`)?.focus());
  }

  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <Pills label="Which work" value={filter} onChange={setFilter} options={FILTERS} />
        <Input type="search" aria-label="Find a task" placeholder="Find by title, name or id" value={text} onChange={(event) => setText(event.target.value)} className="ml-auto h-8 w-56 max-md:ml-0 max-md:w-full" />
      </div>
      {rows.length === 0 ? (
        <EmptyState title="Nothing matches">Other tasks on this board do not match.</EmptyState>
      ) : (
        <div ref={frame} className="scroll min-h-0 flex-1" onKeyDown={onKeyDown} tabIndex={-1}>
          <div className="relative" style={{ height: list.getTotalSize() }}>
            {list.getVirtualItems().map((item) => {
              const row = rows[item.index]!;
              return (
                <div key={item.key} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${item.start}px)`, height: item.size }}>
                  {row.kind === "lane" ? (
                    <h2 className="flex h-full items-end gap-2 px-4 pb-1.5 text-sm font-semibold">
                      {capital(row.lane.title)}
                      {row.lane.number > 0 && <span className="text-xs font-normal text-ink-3">Stage {row.lane.number}</span>}
                      <span className="tabular text-xs font-normal text-ink-3">{row.count}</span>
                    </h2>
                  ) : (
                    <Line one={row.one} isSelected={row.one.node.id === selected} now={now} onOpen={onOpen} />
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

function Line({ one, isSelected, now, onOpen }: { one: Shown; isSelected: boolean; now: number; onOpen: (id: string) => void }) {
  const { node, standing, order, isCoordinator, open } = one;
  return (
    <button
      type="button"
      data-card={node.id}
      aria-pressed={isSelected}
      onClick={() => onOpen(node.id)}
      className={cx("flex size-full items-center gap-3 border-b border-line px-4 text-left text-sm outline-offset-[-2px] hover:bg-hover", isSelected && "bg-press hover:bg-press")}
    >
      <span className="w-[136px] shrink-0 max-md:w-auto">
        <StandingChip standing={standing} />
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{node.title}</span>
        <span className="block truncate text-xs text-ink-3">{note(node, open)}</span>
      </span>
      {node.assignee && (
        <span className="flex w-32 shrink-0 items-center gap-2 text-xs text-ink-2 max-md:w-auto">
          <Avatar name={node.assignee} order={order} isCoordinator={isCoordinator} className="size-5 rounded-full text-[10px]" />
          <span className="truncate max-md:sr-only">{capital(node.assignee)}</span>
        </span>
      )}
      <span className="tabular w-20 shrink-0 text-right text-xs text-ink-2 max-md:hidden">{elapsed(node, now)}</span>
      <span className="tabular w-16 shrink-0 text-right text-xs text-ink-2 max-md:hidden">{node.cost.usd > 0 ? money(node.cost.usd) : ""}</span>
    </button>
  );
}

function note(node: WorkNode, open: number): string {
  if (node.waiting_reason) return node.waiting_reason;
  if (open > 0 && node.status === "pending") return `Waits for ${open} other`;
  return (node.result ?? (stopWords(node.stop_reason) || (node.checkpoint ?? node.task))).split("\n", 1)[0]!;
}
