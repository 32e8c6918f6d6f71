/**
 * Items: the list that a conversation shows, in order of time.
 *
 * It joins three sources: stored messages (with all details), rows of the live event log (with tool calls and system
 * lines), and messages that are not sent yet. A message that is in several sources is shown once. Rows that are no part
 * of the conversation are folded into one line between its messages; see `folding.ts`.
 */
import type { Message } from "@/api/client";
import { dayKey, dayLabel } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import type { MessageRow, NodeSummary, Row } from "@/live/log";
import type { UnsentMessage } from "@/live/store";
import { foldedItem, type FoldedItem, isFolded, isShownByReply, type ViewMode } from "@/views/conversation/folding";

export type Item =
  | { kind: "day"; key: string; label: string }
  | { kind: "earlier"; key: string }
  | { kind: "new"; key: string }
  | { kind: "row"; key: string; row: Row; message: Message | null; isContinued: boolean; edited: Edited }
  | FoldedItem
  | { kind: "unsent"; key: string; unsent: UnsentMessage };

/** Whether another message took the place of this one: then it is folded, or open below its line. */
export type Edited = "no" | "folded" | "open";

export interface ItemSources {
  /** Oldest first. */
  messages: Message[];
  rows: Row[];
  unsent: UnsentMessage[];
  /** Whether older messages or events can be loaded. */
  hasEarlier: boolean;
  /** The first message that was unread when the person opened the conversation. */
  firstUnread: string | null;
  view: ViewMode;
  nodes: Readonly<Record<string, NodeSummary>>;
  /** Whether the person has opened or closed a folded line, by its key. */
  opened: ReadonlyMap<string, boolean>;
  /** The key of a row, or the id of a message, that the page must show: the line that holds it is open at first. */
  at?: string;
}

/**
 * Return the message below the "New" line: the first one of the agent that the person has not seen, after the last that
 * they have seen or written. Null if there is none, or nothing above it.
 */
export function firstUnread(messages: readonly Message[], agentId: string): string | null {
  const isToPerson = (message: Message): boolean => message.sender === agentId && message.recipient === HUMAN;
  const lastSeen = messages.findLastIndex((message) => message.sender === HUMAN || (isToPerson(message) && message.seen_at !== null));
  const index = messages.findIndex((message, at) => at > lastSeen && isToPerson(message) && message.seen_at === null);
  return index > 0 ? messages[index]!.id : null;
}

/** Whether another row shows the message: an answer is shown in the card of its question. */
const isShownElsewhere = (message: Message): boolean => message.kind === "answer" && message.in_reply_to !== null;

/** Messages of one sender within this time are grouped under one name. */
const GROUP_WITHIN_MS = 5 * 60_000;

export function buildItems(sources: ItemSources): Item[] {
  const messageById = new Map(sources.messages.map((message) => [message.id, message]));
  const deliveredClientIds = new Set(sources.messages.map((message) => message.client_id).filter((id) => id !== null));
  // The event of a sent message may arrive before the response of its POST. Until then the unsent item and the row have
  // different ids, so they are matched by their text.
  const unsentTexts = new Set(sources.unsent.map((one) => one.text.trim()));
  const edited = editedIds(sources);
  const idsInLog = new Set<string>();
  const rows = sources.rows.filter((row) => {
    if (row.kind === "tools") return !isShownByReply(row, sources.nodes);
    if (row.kind !== "message") return true;
    idsInLog.add(row.id);
    const isDuplicate = row.sender === HUMAN && !row.isGoal && !messageById.has(row.id) && unsentTexts.has(row.text.trim());
    return !isDuplicate && row.messageKind !== "answer";
  });
  const olderRows = sources.messages.filter((message) => !idsInLog.has(message.id) && !isShownElsewhere(message)).map(toRow);
  const items: Item[] = sources.hasEarlier ? [{ kind: "earlier", key: "earlier" }] : [];
  let midnight = 0;
  let previous: Row | null = null;
  let folded: Row[] = [];
  const addRow = (row: Row) => {
    const message = row.kind === "message" ? (messageById.get(row.id) ?? null) : null;
    const fold: Edited = row.kind !== "message" || !edited.has(row.id) ? "no" : (sources.opened.get(row.key) ?? sources.at === row.id) ? "open" : "folded";
    items.push(cachedItem(row, message, continuesGroup(previous, row), fold));
    previous = fold === "no" ? row : null;
  };
  const endFolded = () => {
    const rows = folded;
    folded = [];
    if (rows.length === 0) return;
    // One notice alone is as short as the line that would hold it.
    if (rows.length === 1 && rows[0]!.kind === "system") return addRow(rows[0]!);
    const line = foldedItem(rows, sources.opened, sources.at);
    items.push(line);
    previous = null;
    if (line.isOpen) rows.forEach(addRow);
    previous = null;
  };
  for (const row of mergeByTime(olderRows, rows)) {
    if (timeOf(row) >= midnight) {
      endFolded();
      items.push({ kind: "day", key: `day ${dayKey(row.at)}`, label: dayLabel(row.at) });
      midnight = new Date(row.at).setHours(24, 0, 0, 0);
      previous = null;
    }
    if (row.kind === "message" && row.id === sources.firstUnread) {
      endFolded();
      items.push({ kind: "new", key: "new" });
      previous = null;
    }
    if (isFolded(row, sources.view)) {
      folded.push(row);
      continue;
    }
    endFolded();
    addRow(row);
  }
  endFolded();
  for (const unsent of sources.unsent) {
    if (!deliveredClientIds.has(unsent.clientId)) items.push({ kind: "unsent", key: unsent.clientId, unsent });
  }
  return items;
}

/** Return the ids of the messages that others take the place of, also of one that is on its way. */
function editedIds({ messages, rows, unsent }: ItemSources): Set<string | undefined> {
  const stored = messages.filter((one) => one.edited_by !== null).map((one) => one.id);
  const live = rows.map((row) => (row.kind === "message" ? row.edits : undefined));
  return new Set([...stored, ...live, ...unsent.filter((one) => one.state !== "refused").map((one) => one.edits)]);
}

const times = new WeakMap<Row, number>();

/** Return the time of a row in milliseconds. It is kept: the list is built again with each event, from thousands of rows. */
function timeOf(row: Row): number {
  let time = times.get(row);
  if (time === undefined) times.set(row, (time = Date.parse(row.at)));
  return time;
}

type RowItem = Extract<Item, { kind: "row" }>;
const itemCache = new WeakMap<Row, RowItem>();

/** Return the cached item if nothing changed: the memoized row is then not rendered again. */
function cachedItem(row: Row, message: Message | null, isContinued: boolean, edited: Edited): RowItem {
  const known = itemCache.get(row);
  if (known && known.message === message && known.isContinued === isContinued && known.edited === edited) return known;
  const item: RowItem = { kind: "row", key: row.key, row, message, isContinued, edited };
  itemCache.set(row, item);
  return item;
}

function continuesGroup(previous: Row | null, row: Row): boolean {
  if (previous?.kind !== "message" || row.kind !== "message") return false;
  const isSameExchange = previous.sender === row.sender && previous.recipient === row.recipient && isPlainMessage(previous) && isPlainMessage(row);
  return isSameExchange && timeOf(row) - timeOf(previous) < GROUP_WITHIN_MS;
}

const isPlainMessage = (row: MessageRow): boolean => row.messageKind === "message" || row.messageKind === "nudge";

const rowCache = new WeakMap<Message, MessageRow>();

function toRow(message: Message): MessageRow {
  const known = rowCache.get(message);
  if (known) return known;
  const row: MessageRow = {
    kind: "message",
    key: message.id,
    seq: 0,
    at: message.created_at,
    id: message.id,
    sender: message.sender,
    recipient: message.recipient,
    messageKind: message.kind,
    text: message.text,
    nodeId: message.node_id,
    edits: message.edits ?? undefined,
  };
  rowCache.set(message, row);
  return row;
}

/** Merge two lists that are sorted by time. */
function* mergeByTime(left: Row[], right: Row[]): Generator<Row> {
  let i = 0;
  for (const row of right) {
    while (i < left.length && timeOf(left[i]!) <= timeOf(row)) yield left[i++]!;
    yield row;
  }
  while (i < left.length) yield left[i++]!;
}
