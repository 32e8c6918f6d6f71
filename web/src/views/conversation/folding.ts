/**
 * Folding: which rows a conversation folds into one line, and what that line says.
 *
 * The *conversation* shows the words between the person and the agent; everything else (tool calls, words between
 * teammates, notices) is folded. The *work* view shows every step and folds only notices that follow each other. A
 * failure and a warning are never folded.
 */
import { isReading } from "@/lib/consulted";
import { plural } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import type { NodeSummary, Row, SystemRow, ToolsRow } from "@/live/log";

export type ViewMode = "conversation" | "work";

export interface FoldedItem {
  kind: "folded";
  key: string;
  rows: Row[];
  /** The newest notice among the rows, which the line shows. */
  notice: SystemRow | null;
  /** What the line holds, such as "2 notices, 5 tool calls"; while it is folded, beside the notice that it shows. */
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
  const notices = rows.filter((row) => row.kind === "system").length;
  const counts: [number, string][] = [
    isOpen ? [notices, "notice"] : [notices - 1, "more notice"],
    [calls.length, "tool call"],
    [rows.filter((row) => row.kind === "text").length, "remark"],
    [rows.filter((row) => row.kind === "message").length, "message between teammates"],
  ];
  const more = counts
    .filter(([n]) => n > 0)
    .map(([n, one]) => plural(n, one, one.startsWith("message") ? "messages between teammates" : `${one}s`))
    .join(", ");
  const item: FoldedItem = { kind: "folded", key, rows, notice, more, failed: calls.filter((call) => call.failed).length, isOpen };
  cache.set(first, item);
  return item;
}
