/** Edges: the lines between cards. The lines of the card that a person points at stand out, and the others fade. */
import { BaseEdge, type Edge as FlowEdge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { CARD, type BoardLayout } from "@/views/board/layout";

/** With more lines than this, only those of the active card are drawn: nobody can follow more. */
export const MANY_EDGES = 60;
/** How far left of its column a line from a parent to the tasks below it runs. */
const BRANCH_PX = 9;

/** A line from a parent to a child below it in the same column: down the left side, as in a tree of folders. */
const Branch = memo(function Branch({ id, sourceX, sourceY, targetX, targetY, style }: EdgeProps) {
  const left = sourceX - CARD.width;
  return <BaseEdge id={id} path={`M${left},${sourceY} H${left - BRANCH_PX} V${targetY} H${targetX}`} style={style} />;
});
export const EDGE_TYPES = { branch: Branch };

/** Return the lines to draw. `active` is the card whose lines stand out: the one under the pointer, or the selected one. */
export function visibleEdges(layout: BoardLayout, isDone: (id: string) => boolean, active: string | undefined): FlowEdge[] {
  const touches = (edge: { source: string; target: string }): boolean => edge.source === active || edge.target === active;
  const hasMany = layout.edges.length > MANY_EDGES;
  const isAnyActive = active !== undefined && layout.edges.some(touches);
  return layout.edges
    .filter((edge) => !hasMany || touches(edge))
    .map((edge): FlowEdge => {
      const isActive = touches(edge);
      const isBelow = edge.kind === "spawned" && layout.positions.get(edge.source)?.x === layout.positions.get(edge.target)?.x;
      return {
        id: edge.id,
        source: edge.source,
        target: edge.target,
        type: isBelow ? "branch" : "default",
        focusable: false,
        selectable: false,
        zIndex: isActive ? 1 : 0,
        className: isActive ? "active-edge" : undefined,
        style: {
          stroke: isActive ? "var(--ink)" : edge.kind === "needs" && isDone(edge.source) ? "var(--done-dot)" : "var(--edge)",
          strokeWidth: isActive ? 2.5 : 1.5,
          strokeDasharray: edge.kind === "spawned" ? "4 4" : undefined,
          opacity: isAnyActive && !isActive ? 0.3 : 1,
        },
      };
    });
}
