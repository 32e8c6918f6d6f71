/**
 * Folding: which rows a conversation folds into one line, and what that line says.
 *
 * The *conversation* shows the words between the person and the agent; everything else (tool calls, words between
 * teammates, notices) is folded. The *work* view shows every step and folds only notices that follow each other. A
 * failure and a warning are never folded.
 */
import { isReading } from "@/lib/consulted";
import { duration, plural } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import type { NodeSummary, Row, SystemRow, ToolsRow } from "@/live/log";

export type ViewMode = "conversation" | "work";

export interface FoldedItem {
  kind: "folded";
  key: string;
  rows: Row[];
  /** The newest notice among the rows, which the line shows. */
  notice: SystemRow | null;
  /** What the line holds: "12 steps · 40s", or, of notices alone, how many there are besides the one that it shows. */
  more: string;
  failed: number;
  isOpen: boolean;
}

export function isFolded(row: Row, view: ViewMode): boolean {
  if (row.kind === "system") return row.tone !== "fail" && row.tone !== "wait";
  return view === "conversation" && !(row.kind === "message" && (row.sender === HUMAN || row.recipient === HUMAN));
}

/** Whether a completed reply itself says what these calls have read. */
export function isShownByReply(row: ToolsRow, nodes: Readonly<Record<string, NodeSummary>>): boolean {
  const node = nodes[row.nodeId];
  return node?.lane === "reply" && node.status === "completed" && row.calls.every((call) => !call.failed && isReading(call.name));
}

/** Return how many steps an agent took in these rows and how long it worked on them, such as "12 steps · 40s"; empty if it took none. */
export function stepsText(rows: readonly Row[]): string {
  let steps = 0;
  // The time between the tasks of an agent is none that it worked.
  const spans = new Map<string, { from: number; to: number; waited: number }>();
  for (const row of rows) {
    if (row.kind === "message") steps += 1;
    if (row.kind !== "tools" && row.kind !== "text") continue;
    const calls = row.kind === "tools" ? row.calls : [];
    steps += Math.max(calls.length, 1);
    const times = [row.at, ...calls.flatMap((call) => [call.startedAt, call.endedAt ?? call.startedAt])].map(Date.parse);
    const { from, to, waited } = spans.get(row.nodeId) ?? { from: Infinity, to: 0, waited: 0 };
    spans.set(row.nodeId, { from: Math.min(from, ...times), to: Math.max(to, ...times), waited: calls.reduce((sum, call) => sum + call.waitedMs, waited) });
  }
  if (steps === 0) return "";
  const worked = [...spans.values()].reduce((sum, { from, to, waited }) => sum + Math.max(0, to - from - waited), 0);
  return [plural(steps, "step"), worked > 0 && duration(worked)].filter(Boolean).join(" · ");
}

const cache = new WeakMap<Row, FoldedItem>();

/** Return the line of these rows. The cached one is returned if nothing changed: the memoized row is then not rendered again. */
export function foldedItem(rows: Row[], opened: ReadonlyMap<string, boolean>, at: string | undefined): FoldedItem {
  const first = rows[0]!;
  const key = `folded ${first.key}`;
  const isOpen = opened.get(key) ?? (at !== undefined && rows.some((row) => row.key === at || (row.kind === "message" && row.id === at)));
  const known = cache.get(first);
  if (known?.isOpen === isOpen && known.rows.length === rows.length && known.rows.every((row, index) => row === rows[index])) return known;
  const notice = rows.findLast((row) => row.kind === "system") ?? null;
  const calls = rows.flatMap((row) => (row.kind === "tools" ? row.calls : []));
  const others = rows.filter((row) => row.kind === "system").length - (isOpen ? 0 : 1);
  const more = stepsText(rows) || (others > 0 ? plural(others, isOpen ? "notice" : "more notice") : "");
  const item: FoldedItem = { kind: "folded", key, rows, notice, more, failed: calls.filter((call) => call.failed).length, isOpen };
  cache.set(first, item);
  return item;
}
