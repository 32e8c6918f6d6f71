/** Backdrop: what is drawn behind the cards: the frames of stages, the lines of the tree, and dependencies. */
import { ViewportPortal } from "@xyflow/react";
import { type CSSProperties, Fragment, memo, useContext } from "react";
import { cx } from "@/lib/cx";
import { capitalize, money } from "@/lib/format";
import { type CardData, DetailLevel } from "@/views/board/Card";
import { CARD, CORNER, type Frame, type Line, type Point, type TreeLayout } from "@/views/tree/layout";
import type { Stack } from "@/views/tree/stacks";

/** A dependency between two cards: one of them may stand for a task that it hides. */
export interface Need {
  source: string;
  target: string;
  isMet: boolean;
}

/** Return the dependencies between different cards. */
export function needsBetween(cards: ReadonlyMap<string, CardData>, shownBy: ReadonlyMap<string, string>): Need[] {
  const found = new Map<string, Need>();
  for (const { node } of cards.values()) {
    const target = shownBy.get(node.id);
    for (const id of node.depends_on) {
      const source = shownBy.get(id);
      if (source === undefined || target === undefined || source === target) continue;
      const isMet = cards.get(id)?.node.status === "completed";
      const known = found.get(`${source}>${target}`);
      if (!known) found.set(`${source}>${target}`, { source, target, isMet });
      else known.isMet &&= isMet;
    }
  }
  return [...found.values()];
}

/** The width of a line of the tree: it stays visible from afar. */
const LINE_WIDTHS = { full: "1.5px", title: "3px", status: "6px" };
const STROKE = { fill: "none", strokeLinecap: "round", strokeLinejoin: "round" } as const;

interface BackdropProps {
  layout: TreeLayout;
  cards: ReadonlyMap<string, CardData>;
  stacks: ReadonlyMap<string, Stack>;
}

export const Backdrop = memo(function Backdrop({ layout, cards, stacks }: BackdropProps) {
  return (
    <ViewportPortal>
      <div className="pointer-events-none absolute top-0 left-0" style={{ zIndex: -1, "--line-width": LINE_WIDTHS[useContext(DetailLevel)] } as CSSProperties}>
        {layout.frames.map((frame) => (
          <Fragment key={`${frame.stage} ${frame.nodeIds[0]}`}>
            <TreeLine line={frame.line} />
            <StageFrame frame={frame} cards={cards} stacks={stacks} />
          </Fragment>
        ))}
        {[...layout.lines].map(([id, line]) => (
          <TreeLine key={id} line={line} />
        ))}
      </div>
    </ViewportPortal>
  );
});

/** A line of the tree as boxes: an SVG of hundreds of lines takes a browser without a graphics processor many times as long to draw. */
const TreeLine = memo(function TreeLine({ line }: { line: Line }) {
  const turn = line.at(-1)!.y === line.at(-2)!.y ? 3 : 0;
  const straight = turn > 0 ? line.slice(0, -2) : line;
  const [from, , to] = line.slice(-3) as [Point, Point, Point];
  return (
    <>
      {straight.slice(1).map((end, at) => (
        <i key={at} className={cx("absolute border-edge", end.y === straight[at]!.y ? "border-b-(length:--line-width)" : "border-l-(length:--line-width)")} style={boxOf(straight[at]!, end)} />
      ))}
      {turn > 0 && <i className="absolute border-b-(length:--line-width) border-l-(length:--line-width) border-edge" style={{ ...boxOf(from, to), borderBottomLeftRadius: CORNER }} />}
    </>
  );
});

/** Return the box of a straight line, or of one that goes down and then to the right. */
const boxOf = (from: Point, to: Point) => ({
  left: Math.min(from.x, to.x),
  top: Math.min(from.y, to.y),
  width: Math.abs(to.x - from.x),
  height: Math.abs(to.y - from.y),
});

function StageFrame({ frame, cards, stacks }: Omit<BackdropProps, "layout"> & { frame: Frame }) {
  const detail = useContext(DetailLevel);
  const isZoomedOut = detail !== "full";
  const tasks = frame.nodeIds.flatMap((id) => stacks.get(id)?.nodeIds ?? [id]).flatMap((id) => cards.get(id)?.node ?? []);
  const done = tasks.filter((node) => node.status === "completed").length;
  const usd = tasks.reduce((sum, node) => sum + node.cost.usd, 0);
  return (
    <div data-stage={frame.stage} className="absolute rounded-lg border border-line bg-lane px-4 pt-2.5" style={{ left: frame.x, top: frame.y, width: frame.width, height: frame.height }}>
      <div className={cx("flex items-baseline gap-2 base:text-sm", isZoomedOut && "text-[26px] leading-[26px]")}>
        <span dir="auto" className="truncate font-semibold">{capitalize(frame.title)}</span>
        {frame.number > 0 && !isZoomedOut && <span className="shrink-0 text-xs text-ink-3">Stage {frame.number}</span>}
        <span className={cx("tabular ml-auto shrink-0 text-ink-2", !isZoomedOut && "text-xs")} title="Done tasks, and what the stage has cost">
          {done}/{tasks.length}
          {usd > 0 && !isZoomedOut && ` · ${money(usd)}`}
        </span>
      </div>
    </div>
  );
}

interface DependenciesProps {
  layout: TreeLayout;
  needs: readonly Need[];
  /** The card whose dependencies stand out. */
  active: string | undefined;
  /** Whether the others are drawn, too. */
  areAllShown: boolean;
}

/** Dependencies: those of the active card stand out, with an arrow to the task that needs the other. They run behind the cards, whose words would be struck through. */
export const Dependencies = memo(function Dependencies({ layout, needs, active, areAllShown }: DependenciesProps) {
  const isActive = (need: Need): boolean => need.source === active || need.target === active;
  const pathOf = (need: Need): string => curve(layout.positions.get(need.source)!, layout.positions.get(need.target)!);
  const strong = needs.filter(isActive);
  const others = areAllShown ? needs.filter((need) => !isActive(need)) : [];
  const faint = strong.length > 0 ? 0.3 : 1;
  return (
    <ViewportPortal>
      <svg aria-hidden className="pointer-events-none absolute top-0 left-0 overflow-visible" width={1} height={1} style={{ zIndex: -1 }}>
        <marker id="need-arrow" viewBox="0 0 8 8" refX={7} refY={4} markerWidth={8} markerHeight={8} markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0,0 L8,4 L0,8 z" fill="var(--ink)" />
        </marker>
        <path data-needs="open" d={others.filter((need) => !need.isMet).map(pathOf).join("")} {...STROKE} stroke="var(--control)" strokeWidth={1.5} strokeDasharray="5 4" opacity={faint} />
        <path data-needs="met" d={others.filter((need) => need.isMet).map(pathOf).join("")} {...STROKE} stroke="var(--done-dot)" strokeWidth={1.5} strokeDasharray="5 4" opacity={faint} />
        {strong.map((need) => (
          <path key={`${need.source}>${need.target}`} data-need={need.isMet ? "met" : "open"} d={pathOf(need)} {...STROKE} stroke="var(--ink)" strokeWidth={2.5} markerEnd="url(#need-arrow)" />
        ))}
      </svg>
    </ViewportPortal>
  );
});

/** Return a line from a card to the left side of one further to the right, else around to the right side of one that is not. */
function curve(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const start = { x: from.x + CARD.width, y: from.y + CARD.height / 2 };
  const isAhead = to.x > start.x;
  const end = { x: isAhead ? to.x : to.x + CARD.width, y: to.y + CARD.height / 2 };
  const reach = isAhead ? Math.max(30, (end.x - start.x) / 2) : 48;
  const turn = isAhead ? end.x - reach : Math.max(start.x, end.x) + reach;
  return `M${start.x},${start.y} C${isAhead ? start.x + reach : turn},${start.y} ${turn},${end.y} ${end.x},${end.y}`;
}
