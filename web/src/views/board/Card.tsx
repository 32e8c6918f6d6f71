/** Card: one task in the tree, and what folds and unfolds the tasks below it. */
import type { Node, NodeProps } from "@xyflow/react";
import { Minus, Plus, RotateCw } from "lucide-react";
import { createContext, memo, useContext } from "react";
import type { WorkNode } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, money, plural } from "@/lib/format";
import { useNow } from "@/parts/RelativeTime";
import { HELD_BY } from "@/parts/teamState";
import { elapsed, STATUS_STYLES, type DisplayStatus, StatusChip } from "@/parts/taskStatus";
import { Avatar, Chip } from "@/ui";

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
/** What the card of a task or of a stack says about its place in the tree. */
export interface TreeItem {
  level: number;
  /** Whether there are tasks below it, and whether they are hidden. */
  fold: "none" | "open" | "folded";
  /** The tasks below it by status, in words, and the status that is the most urgent; only if they are hidden. */
  hidden: string;
  worst: DisplayStatus;
  /** Whether Tab reaches it: one card of the tree is. */
  isTabStop: boolean;
}
export interface TreeActions {
  onOpen: (id: string) => void;
  onFold: (ids: readonly string[], isFolded: boolean) => void;
}
export type CardNode = Node<{ card: CardData; item: TreeItem; actions: TreeActions }, "card">;

export const treeItem = ({ level, fold, isTabStop }: TreeItem, isSelected: boolean) => ({
  role: "treeitem",
  "aria-level": level,
  "aria-expanded": fold === "none" ? undefined : fold === "open",
  "aria-selected": isSelected,
  tabIndex: isTabStop ? 0 : -1,
});

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

export const Card = memo(function Card({ data, selected }: NodeProps<CardNode>) {
  const detail = useContext(DetailLevel);
  const isZoomedOut = detail !== "full";
  const { node, displayStatus, openDependencies, order, isCoordinator, isNew } = data.card;
  const { item, actions } = data;
  return (
    <>
      <button
        type="button"
        data-card={node.id}
        onClick={() => actions.onOpen(node.id)}
        {...treeItem(item, selected)}
        aria-label={isZoomedOut ? [node.title, STATUS_STYLES[displayStatus].label, item.hidden].filter(Boolean).join(", ") : undefined}
        className={cx(
          "nopan pointer-events-auto flex size-full rounded-md border px-3 py-2 text-left shadow-low outline-offset-2 hover:shadow-high",
          isZoomedOut ? ZOOMED_OUT_STYLES[displayStatus] : CARD_STYLES[displayStatus],
          detail === "title" ? "items-center gap-2" : detail === "status" ? "items-center justify-center" : "flex-col",
          selected && "ring-2 ring-ink",
          isNew && "animate-pop",
        )}
      >
        {isZoomedOut ? (
          <>
            <span aria-hidden className={cx("shrink-0 text-center text-ink-2", detail === "status" ? "text-[64px] leading-[64px]" : "w-8 text-[34px] leading-9")}>
              {STATUS_SYMBOLS[displayStatus]}
            </span>
            {detail === "title" && (
              <span dir="auto" className="line-clamp-2 min-w-0 text-[27px] leading-8 font-semibold break-words">
                {shortTitle(node.title)}
              </span>
            )}
          </>
        ) : (
          <CardBody node={node} displayStatus={displayStatus} openDependencies={openDependencies} order={order} isCoordinator={isCoordinator} hasBelow={item.fold !== "none"} />
        )}
        {item.hidden && !isZoomedOut && <span className="sr-only">Folded: {item.hidden}</span>}
      </button>
      {item.fold !== "none" && !isZoomedOut && <FoldButton id={node.id} item={item} onFold={actions.onFold} />}
      {item.fold === "folded" && detail === "title" && (
        <Chip tone={STATUS_STYLES[item.worst].tone} className="tabular absolute -bottom-4 left-2 rounded-full border border-line-2 px-3 text-[21px] leading-[26px]">
          <span aria-hidden>+ {item.hidden}</span>
        </Chip>
      )}
      {item.fold === "folded" && detail === "status" && <span aria-hidden className="absolute -bottom-2.5 left-2 h-2.5 w-[calc(100%-16px)] rounded-b-md border-2 border-t-0 border-control bg-surface" />}
    </>
  );
});

/** A button for the mouse at the start of the line to the tasks below. With the keyboard, the arrows fold and unfold. */
export function FoldButton({ id, item, onFold }: { id: string; item: TreeItem; onFold: TreeActions["onFold"] }) {
  const isFolded = item.fold === "folded";
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-hidden
      data-fold={id}
      title={isFolded ? "Show the tasks below" : "Hide the tasks below"}
      onClick={() => onFold([id], !isFolded)}
      className={cx("nopan pointer-events-auto absolute -bottom-4 left-1 flex h-6 min-w-6 items-center justify-center rounded-full border border-line-2 bg-surface text-ink-2 hover:bg-hover", isFolded && "pl-1.5")}
    >
      {isFolded ? <Plus className="size-3.5" /> : <Minus className="size-3.5" />}
      {isFolded && (
        <Chip tone={STATUS_STYLES[item.worst].tone} className="tabular bg-transparent py-0 pl-1">
          {item.hidden}
        </Chip>
      )}
    </button>
  );
}

/** What is replaced while the task goes on takes no pointer events: a browser forgets a press on an element that disappears before the button is released. */
function CardBody({ node, displayStatus, openDependencies, order, isCoordinator, hasBelow }: Omit<CardData, "isNew"> & { hasBelow: boolean }) {
  return (
    <>
      <span className="pointer-events-none flex items-center justify-between gap-2">
        <StatusChip status={displayStatus} />
        <ElapsedTime node={node} />
      </span>
      <span dir="auto" className={cx("mt-1 line-clamp-1 text-sm font-medium", displayStatus === "cancelled" && "text-ink-3 line-through")} title={node.title}>
        {node.title}
      </span>
      <span className="pointer-events-none mt-auto flex items-center gap-2 text-xs text-ink-2">
        {node.assignee_id ? (
          <>
            <Avatar name={node.assignee ?? "?"} order={order} isCoordinator={isCoordinator} className="size-[18px] rounded-full text-[9px]" />
            <span dir="auto" className="truncate">{capitalize(node.assignee ?? "")}</span>
          </>
        ) : (
          <span className="truncate text-ink-3">{displayStatus !== "pending" ? "Nobody" : openDependencies > 0 ? `Waits for ${openDependencies}` : node.held_by ? HELD_BY[node.held_by] : "Nobody yet"}</span>
        )}
        {node.assignee_id && openDependencies > 0 && displayStatus === "pending" && <span className="text-ink-3">· waits for {openDependencies}</span>}
        {node.attempt > 1 && (
          <span className="pointer-events-auto flex items-center gap-0.5 text-ink-3" title={`${node.attempt} attempts`}>
            <RotateCw className="size-3" aria-hidden /> {node.attempt}
          </span>
        )}
        {node.cost.calls > 0 && (
          <span className="tabular pointer-events-auto ml-auto" title={hasBelow ? "With all that is below it" : undefined}>
            {node.cost.usd > 0 ? money(node.cost.usd) : plural(node.cost.calls, "model call")}
          </span>
        )}
      </span>
    </>
  );
}

function ElapsedTime({ node }: { node: WorkNode }) {
  const isTicking = node.status === "running" || node.status === "waiting";
  const now = useNow(1000, isTicking);
  return <span className="tabular text-xs text-ink-3">{elapsed(node, now)}</span>;
}
