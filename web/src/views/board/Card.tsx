/** Card: one task on the board, and the background of a lane. */
import type { Node, NodeProps } from "@xyflow/react";
import { RotateCw } from "lucide-react";
import { createContext, memo, useContext } from "react";
import type { WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { useNow } from "@/parts/RelativeTime";
import { elapsed, STATUS_STYLES, type DisplayStatus, StatusChip } from "@/parts/taskStatus";
import { Avatar } from "@/ui";
import type { Lane } from "@/views/board/layout";

export interface CardData {
  node: WorkNode;
  displayStatus: DisplayStatus;
  /** How many of its dependencies are not completed. */
  openDependencies: number;
  /** The assignee's place in the order of joining; it decides the avatar's hue. */
  order: number;
  isCoordinator: boolean;
  /** Added after the board was opened: the card appears with an animation. */
  isNew: boolean;
}
export type CardNode = Node<{ card: CardData; onOpen: (id: string) => void }, "card">;
export type LaneNode = Node<{ lane: Lane; done: number; total: number }, "lane">;

/** How much a card shows: everything, only its title in large letters, or only its status. */
export type Detail = "full" | "title" | "status";
export const DetailLevel = createContext<Detail>("full");
/** This many characters of a title fit a card at the large font size. */
const SHORT_TITLE_CHARACTERS = 24;
export const shortTitle = (title: string): string => (title.length > SHORT_TITLE_CHARACTERS ? `${title.slice(0, SHORT_TITLE_CHARACTERS - 1)}…` : title);
/** Status signs of zoomed-out cards. They are text, not icons: clipped or scaled elements cost time in every frame while the view moves. */
const STATUS_SYMBOLS: Record<DisplayStatus, string> = { pending: "◌", assigned: "○", running: "◐", waiting: "◔", asks: "◆", completed: "✓", doubts: "✓", partial: "◑", failed: "✕", cancelled: "⊘" };

const CARD_STYLES: Record<DisplayStatus, string> = {
  pending: "border-dashed border-line-2 bg-canvas",
  assigned: "border-line-2 bg-surface",
  running: "border-line-2 bg-surface",
  waiting: "border-line-2 bg-surface",
  asks: "border-wait-line bg-surface",
  completed: "border-line bg-surface",
  doubts: "border-wait-line bg-surface",
  partial: "border-wait-line bg-surface",
  failed: "border-fail/40 bg-surface",
  cancelled: "border-dashed border-line bg-canvas",
};
const ZOOMED_OUT_STYLES: Record<DisplayStatus, string> = {
  pending: "border-dashed border-line-2 bg-canvas",
  assigned: "border-line-2 bg-surface",
  running: "border-work-dot bg-work-bg",
  waiting: "border-line-2 bg-surface",
  asks: "border-wait-dot bg-wait-bg",
  completed: "border-done-dot/50 bg-done-bg",
  doubts: "border-wait-dot bg-wait-bg",
  partial: "border-wait-dot bg-wait-bg",
  failed: "border-fail-dot bg-fail-bg",
  cancelled: "border-dashed border-line bg-canvas",
};

/** The end points of edges. React Flow looks for these elements by class and draws no edge without them. */
export const EDGE_HANDLES = (
  <>
    <span className="target absolute top-1/2 left-0" data-handlepos="left" />
    <span className="source absolute top-1/2 right-0" data-handlepos="right" />
  </>
);

export const Card = memo(function Card({ data, selected }: NodeProps<CardNode>) {
  const detail = useContext(DetailLevel);
  const isZoomedOut = detail !== "full";
  const { node, displayStatus, openDependencies, order, isCoordinator, isNew } = data.card;
  return (
    <>
      {EDGE_HANDLES}
      <button
        type="button"
        data-card={node.id}
        onClick={() => data.onOpen(node.id)}
        aria-pressed={selected}
        aria-label={isZoomedOut ? `${node.title}, ${STATUS_STYLES[displayStatus].label}` : undefined}
        className={cx(
          "nopan pointer-events-auto flex size-full rounded-md border px-3 py-2.5 text-left shadow-low outline-offset-2 hover:shadow-high",
          isZoomedOut ? ZOOMED_OUT_STYLES[displayStatus] : CARD_STYLES[displayStatus],
          detail === "title" ? "items-center gap-2" : detail === "status" ? "items-center justify-center" : "flex-col",
          selected && "ring-2 ring-ink",
          isNew && "animate-pop",
        )}
      >
        {isZoomedOut ? (
          <>
            <span aria-hidden className={cx("shrink-0 text-center text-ink-2", detail === "status" ? "text-[80px] leading-[80px]" : "w-8 text-[34px] leading-9")}>
              {STATUS_SYMBOLS[displayStatus]}
            </span>
            {detail === "title" && (
              <span dir="auto" className="min-w-0 text-[27px] leading-8 font-semibold break-words">
                {shortTitle(node.title)}
              </span>
            )}
          </>
        ) : (
          <CardBody node={node} displayStatus={displayStatus} openDependencies={openDependencies} order={order} isCoordinator={isCoordinator} />
        )}
      </button>
    </>
  );
});

/** What is replaced while the task goes on takes no pointer events: a browser forgets a press on an element that disappears before the button is released. */
function CardBody({ node, displayStatus, openDependencies, order, isCoordinator }: Omit<CardData, "isNew">) {
  return (
    <>
      <span className="pointer-events-none flex items-center justify-between gap-2">
        <StatusChip status={displayStatus} />
        <ElapsedTime node={node} />
      </span>
      <span dir="auto" className={cx("mt-1.5 line-clamp-1 text-sm font-medium", displayStatus === "cancelled" && "text-ink-3 line-through")} title={node.title}>
        {node.title}
      </span>
      <span className="pointer-events-none mt-auto flex items-center gap-2 text-xs text-ink-2">
        {node.assignee_id ? (
          <>
            <Avatar name={node.assignee ?? "?"} order={order} isCoordinator={isCoordinator} className="size-[18px] rounded-full text-[9px]" />
            <span dir="auto" className="truncate">{capitalize(node.assignee ?? "")}</span>
          </>
        ) : (
          <span className="text-ink-3">{displayStatus !== "pending" ? "Nobody" : openDependencies > 0 ? `Waits for ${openDependencies}` : "Nobody yet"}</span>
        )}
        {node.assignee_id && openDependencies > 0 && displayStatus === "pending" && <span className="text-ink-3">· waits for {openDependencies}</span>}
        {node.attempt > 1 && (
          <span className="pointer-events-auto flex items-center gap-0.5 text-ink-3" title={`${node.attempt} attempts`}>
            <RotateCw className="size-3" aria-hidden /> {node.attempt}
          </span>
        )}
        <span className="tabular ml-auto">{node.cost.usd > 0 ? money(node.cost.usd) : node.cost.calls > 0 ? plural(node.cost.calls, "model call") : ""}</span>
      </span>
    </>
  );
}

function ElapsedTime({ node }: { node: WorkNode }) {
  const isTicking = node.status === "running" || node.status === "waiting";
  const now = useNow(1000, isTicking);
  return <span className="tabular text-xs text-ink-3">{elapsed(node, now)}</span>;
}

export const LaneBackground = memo(function LaneBackground({ data }: NodeProps<LaneNode>) {
  const { lane, done, total } = data;
  const detail = useContext(DetailLevel);
  const isZoomedOut = detail !== "full";
  return (
    <div className={cx("size-full rounded-lg px-[18px] pt-3.5", lane.kind === "stage" ? "bg-lane" : "bg-lane-2")}>
      <div className={cx("flex items-baseline gap-2 text-sm", detail === "title" && "text-[30px] leading-[30px]", detail === "status" && "text-[46px] leading-[46px]")}>
        <span dir="auto" className="truncate font-semibold">{capitalize(lane.title)}</span>
        {lane.number > 0 && <span className={cx("shrink-0 text-ink-3", !isZoomedOut && "text-xs")}>Stage {lane.number}</span>}
        <span className={cx("tabular ml-auto shrink-0 text-ink-2", !isZoomedOut && "text-xs")}>
          {done}/{total}
        </span>
      </div>
    </div>
  );
});
