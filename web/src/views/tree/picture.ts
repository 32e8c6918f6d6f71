/** Picture: the tree of tasks drawn small, in the colours of their statuses. */
import type { DisplayStatus } from "@/parts/taskStatus";
import { CARD, type TreeLayout } from "@/views/tree/layout";

export type StatusCounts = readonly (readonly [DisplayStatus, number])[];

/** What needs a person comes first, then what went wrong, what runs, what waits and what is done. */
const ORDER: readonly DisplayStatus[] = ["asks", "failed", "partial", "doubts", "running", "waiting", "assigned", "pending", "completed", "cancelled"];
const COLOURS: Record<DisplayStatus, string> = {
  asks: "--wait-dot",
  failed: "--fail-dot",
  partial: "--wait-dot",
  doubts: "--wait-dot",
  running: "--work-dot",
  waiting: "--control",
  assigned: "--control",
  pending: "--line-2",
  completed: "--done-dot",
  cancelled: "--line-2",
};

/** Return the number of tasks in each status that occurs, the most urgent status first. */
export function countStatuses(ids: readonly string[], statusOf: (id: string) => DisplayStatus | undefined): StatusCounts {
  const found = new Map<DisplayStatus, number>();
  for (const id of ids) {
    const status = statusOf(id) ?? "pending";
    found.set(status, (found.get(status) ?? 0) + 1);
  }
  return ORDER.filter((status) => found.has(status)).map((status) => [status, found.get(status)!] as const);
}

interface Drawn {
  scale: number;
  width: number;
  height: number;
  /** What a card stands for: it shows the share of each status. */
  countsOf: (id: string) => StatusCounts;
  isMarked?: (id: string) => boolean;
}

/** Draw a tree on a canvas: frames, lines and cards. */
export function drawTree(canvas: HTMLCanvasElement, layout: TreeLayout, { scale, width, height, countsOf, isMarked }: Drawn): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string): string => styles.getPropertyValue(name);
  canvas.width = Math.ceil(width * devicePixelRatio);
  canvas.height = Math.ceil(height * devicePixelRatio);
  context.scale(scale * devicePixelRatio, scale * devicePixelRatio);
  context.fillStyle = colour("--lane");
  for (const frame of layout.frames) context.fillRect(frame.x, frame.y, frame.width, frame.height);
  context.strokeStyle = colour("--edge");
  context.lineWidth = 1 / scale;
  for (const line of [...layout.frames.map((frame) => frame.line), ...layout.lines.values()]) {
    context.beginPath();
    for (const { x, y } of line) context.lineTo(x, y);
    context.stroke();
  }
  for (const [id, { x, y }] of layout.positions) {
    const counts = countsOf(id);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    let left = x;
    for (const [status, count] of counts) {
      const part = (CARD.width * count) / total;
      context.fillStyle = colour(COLOURS[status]);
      context.fillRect(left, y, part, CARD.height);
      left += part;
    }
    if (!isMarked?.(id)) continue;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2 / scale;
    context.strokeRect(x - 1 / scale, y - 1 / scale, CARD.width + 2 / scale, CARD.height + 2 / scale);
  }
}
