/** One task as a card, and the lane it stands in. */
import type { Node, NodeProps } from "@xyflow/react";
import { RotateCw } from "lucide-react";
import { createContext, memo, useContext } from "react";
import type { WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capital, money, plural } from "@/lib/format";
import { useNow } from "@/views/shared/RelativeTime";
import { elapsed, LOOKS, type Standing, StandingChip } from "@/views/shared/taskStatus";
import { Avatar } from "@/ui";
import type { Lane } from "@/views/board/layout";

export interface Shown {
  node: WorkNode;
  standing: Standing;
  /** How many of the things it needs are not done. */
  open: number;
  order: number;
  isCoordinator: boolean;
  isFresh: boolean;
}
export type CardNode = Node<{ shown: Shown; onOpen: (id: string) => void }, "card">;
export type LaneNode = Node<{ lane: Lane; done: number }, "lane">;

/** Whether cards are so small that only a few words on them can be read. */
export const Far = createContext(false);
/** So much of a title fits a card from afar, whatever its letters. */
const FAR_TITLE = 26;
/** From afar a card is a sign and words alone: whatever clips or scales, as pictures do, is weighed anew whenever the view moves. */
const SIGNS: Record<Standing, string> = { pending: "◌", assigned: "○", running: "◐", waiting: "◔", asks: "◆", completed: "✓", failed: "✕", cancelled: "⊘" };

const BORDERS: Record<Standing, string> = {
  pending: "border-dashed border-line-2 bg-canvas",
  assigned: "border-line-2 bg-surface",
  running: "border-line-2 bg-surface",
  waiting: "border-line-2 bg-surface",
  asks: "border-wait-line bg-surface",
  completed: "border-line bg-surface",
  failed: "border-fail/40 bg-surface",
  cancelled: "border-dashed border-line bg-canvas",
};
const FAR: Record<Standing, string> = {
  pending: "border-dashed border-line-2 bg-canvas",
  assigned: "border-line-2 bg-surface",
  running: "border-work-dot bg-work-bg",
  waiting: "border-line-2 bg-surface",
  asks: "border-wait-dot bg-wait-bg",
  completed: "border-done-dot/50 bg-done-bg",
  failed: "border-fail-dot bg-fail-bg",
  cancelled: "border-dashed border-line bg-canvas",
};

/** Where lines begin and end: the picture measures them, and without them it draws no line. */
const ENDS = (
  <>
    <span className="target absolute top-1/2 left-0" data-handlepos="left" />
    <span className="source absolute top-1/2 right-0" data-handlepos="right" />
  </>
);

export const Card = memo(function Card({ data, selected }: NodeProps<CardNode>) {
  const far = useContext(Far);
  const { node, standing, open, order, isCoordinator, isFresh } = data.shown;
  return (
    <>
      {ENDS}
      <button
        type="button"
        data-card={node.id}
        onClick={() => data.onOpen(node.id)}
        aria-pressed={selected}
        aria-label={far ? `${node.title}, ${LOOKS[standing].words}` : undefined}
        className={cx(
          "nopan pointer-events-auto flex size-full rounded-md border px-3 py-2.5 text-left shadow-low outline-offset-2 hover:shadow-high",
          far ? FAR[standing] : BORDERS[standing],
          far ? "items-center gap-3" : "flex-col",
          selected && "ring-2 ring-ink",
          isFresh && "animate-pop",
        )}
      >
        {far ? (
          <>
            <span aria-hidden className="w-9 shrink-0 text-center text-[36px] leading-9 text-ink-2">
              {SIGNS[standing]}
            </span>
            <span className="min-w-0 text-xl font-semibold break-words">{node.title.length > FAR_TITLE ? `${node.title.slice(0, FAR_TITLE - 1)}…` : node.title}</span>
          </>
        ) : (
          <Near node={node} standing={standing} open={open} order={order} isCoordinator={isCoordinator} />
        )}
      </button>
    </>
  );
});

function Near({ node, standing, open, order, isCoordinator }: Omit<Shown, "isFresh">) {
  return (
    <>
      <span className="flex items-center justify-between gap-2">
        <StandingChip standing={standing} />
        <Took node={node} />
      </span>
      <span className={cx("mt-1.5 line-clamp-1 text-sm font-medium", standing === "cancelled" && "text-ink-3 line-through")} title={node.title}>
        {node.title}
      </span>
      <span className="mt-auto flex items-center gap-2 text-xs text-ink-2">
        {node.assignee_id ? (
          <>
            <Avatar name={node.assignee ?? "?"} order={order} isCoordinator={isCoordinator} className="size-[18px] rounded-full text-[9px]" />
            <span className="truncate">{capital(node.assignee ?? "")}</span>
          </>
        ) : (
          <span className="text-ink-3">{standing !== "pending" ? "Nobody" : open > 0 ? `Waits for ${open}` : "Nobody yet"}</span>
        )}
        {node.assignee_id && open > 0 && standing === "pending" && <span className="text-ink-3">· waits for {open}</span>}
        {node.attempt > 1 && (
          <span className="flex items-center gap-0.5 text-ink-3" title={`${node.attempt} attempts`}>
            <RotateCw className="size-3" aria-hidden /> {node.attempt}
          </span>
        )}
        <span className="tabular ml-auto">{node.cost.usd > 0 ? money(node.cost.usd) : node.cost.calls > 0 ? plural(node.cost.calls, "call") : ""}</span>
      </span>
    </>
  );
}

function Took({ node }: { node: WorkNode }) {
  const runs = node.status === "running" || node.status === "waiting";
  const now = useNow(1000, runs);
  return <span className="tabular text-xs text-ink-3">{elapsed(node, now)}</span>;
}

export const LaneBack = memo(function LaneBack({ data }: NodeProps<LaneNode>) {
  const { lane, done } = data;
  const far = useContext(Far);
  return (
    <div className={cx("size-full rounded-lg px-[18px] pt-3.5", lane.kind === "stage" ? "bg-lane" : "bg-lane-2")}>
      <div className={cx("flex items-baseline gap-2 text-sm", far && "text-[30px] leading-[30px]")}>
        <span className="truncate font-semibold">{capital(lane.title)}</span>
        {lane.number > 0 && <span className={cx("shrink-0 text-ink-3", !far && "text-xs")}>Stage {lane.number}</span>}
        <span className={cx("tabular ml-auto shrink-0 text-ink-2", !far && "text-xs")}>
          {done}/{lane.pieces.length}
        </span>
      </div>
    </div>
  );
});
