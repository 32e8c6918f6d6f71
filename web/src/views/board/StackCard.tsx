/** StackCard: many alike tasks as one card, with the number of tasks in each status. */
import type { Node, NodeProps } from "@xyflow/react";
import { ChevronRight } from "lucide-react";
import { memo, useContext } from "react";
import { cx } from "@/lib/cx";
import { money, plural } from "@/lib/format";
import { type DisplayStatus, STATUS_STYLES } from "@/parts/taskStatus";
import { DetailLevel, shortTitle, treeItem, type TreeActions, type TreeItem } from "@/views/board/Card";
import type { StatusCounts } from "@/views/tree/picture";
import type { Stack } from "@/views/tree/stacks";

export type StackNode = Node<{ stack: Stack; counts: StatusCounts; usd: number; item: TreeItem; actions: TreeActions }, "stack">;

const COLOURS: Record<DisplayStatus, string> = {
  asks: "bg-wait-dot",
  failed: "bg-fail-dot",
  partial: "bg-wait-dot",
  doubts: "bg-wait-dot",
  running: "bg-work-dot",
  waiting: "bg-control",
  assigned: "bg-control",
  pending: "bg-line-2",
  completed: "bg-done-dot",
  cancelled: "bg-line-2",
};

/** Return what a card says of the tasks that it hides: how many, and how many in the most urgent status. */
export function hiddenInWords(counts: StatusCounts): string {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  return counts.length < 2 ? inWords(counts) : `${plural(total, "task")} · ${inWords(counts.slice(0, 1))}`;
}

const inWords = (counts: StatusCounts): string => counts.map(([status, count]) => `${count} ${STATUS_STYLES[status].label.toLowerCase()}`).join(" · ");

export const StackCard = memo(function StackCard({ data, selected }: NodeProps<StackNode>) {
  const { stack, counts, usd, item, actions } = data;
  const detail = useContext(DetailLevel);
  const total = stack.nodeIds.length;
  const isOpen = item.fold === "open";
  const urgent = counts[0]?.[0];
  return (
    <>
      <button
        type="button"
        data-card={stack.id}
        data-stack={stack.id}
        onClick={() => actions.onFold([stack.id], isOpen)}
        {...treeItem(item, selected)}
        aria-label={`${stack.title}: ${plural(total, "task")}, ${inWords(counts).replaceAll(" · ", ", ")}`}
        className={cx(
          "nopan pointer-events-auto flex size-full flex-col rounded-md border bg-surface px-3 py-2 text-left outline-offset-2 hover:bg-hover",
          // Two edges behind the card say that it stands for more than one.
          isOpen ? "border-line-2 border-dashed" : "border-line-2 shadow-[4px_4px_0_-1px_var(--surface),4px_4px_0_0_var(--line-2),8px_8px_0_-1px_var(--surface),8px_8px_0_0_var(--line-2)]",
          urgent === "asks" && "border-wait-dot",
          urgent === "failed" && "border-fail-dot",
          selected && "ring-2 ring-ink",
        )}
      >
        {detail === "full" ? (
          <>
            <span className="flex items-center justify-between gap-2 text-xs text-ink-2">
              <span className="tabular font-medium">{plural(total, "task")}</span>
              <span className="flex items-center gap-0.5 text-ink-3">
                {isOpen ? "Fold" : "Show"} <ChevronRight aria-hidden className={cx("size-3.5", isOpen && "rotate-90")} />
              </span>
            </span>
            <span dir="auto" className="mt-1 line-clamp-1 text-sm font-medium" title={stack.title}>
              {stack.title}
            </span>
            <StatusBar counts={counts} total={total} className="pointer-events-none mt-1.5 h-1.5" />
            <span className="mt-auto flex gap-2 text-xs leading-4 text-ink-2">
              <span className="min-w-0 truncate" title={inWords(counts)}>{inWords(counts)}</span>
              {usd > 0 && <span className="tabular ml-auto">{money(usd)}</span>}
            </span>
          </>
        ) : (
          <>
            <span dir="auto" className={cx("font-semibold", detail === "title" ? "text-[27px] leading-8" : "tabular text-[48px] leading-[52px]")}>
              {detail === "title" ? `${total}× ${shortTitle(stack.title).slice(0, 17)}` : `${total}×`}
            </span>
            <StatusBar counts={counts} total={total} className="pointer-events-none mt-auto h-4" />
          </>
        )}
      </button>
    </>
  );
});

function StatusBar({ counts, total, className }: { counts: StatusCounts; total: number; className: string }) {
  return (
    <span aria-hidden className={cx("flex w-full shrink-0 overflow-hidden rounded-full", className)}>
      {counts.map(([status, count]) => (
        // The least width: one failed task of hundreds must be seen, too.
        <span key={status} className={cx("min-w-1.5", COLOURS[status])} style={{ width: `${(100 * count) / total}%` }} />
      ))}
    </span>
  );
}
