/** Items: what a thread shows, in order: messages of the conversation and rows of the log, under days. */
import type { Message } from "@/api/client";
import { dayKey, dayOf } from "@/lib/format";
import type { MessageRow, Row } from "@/live/log";
import type { Unsent } from "@/live/store";

export type Item =
  | { kind: "day"; key: string; label: string }
  | { kind: "earlier"; key: string }
  | { kind: "new"; key: string }
  | { kind: "row"; key: string; row: Row; message: Message | null; isContinued: boolean }
  | { kind: "unsent"; key: string; unsent: Unsent };

export interface Sources {
  /** Oldest first. */
  said: Message[];
  /** Details of messages that are not of this conversation: questions others ask the person. */
  details: ReadonlyMap<string, Message>;
  rows: Row[];
  unsent: Unsent[];
  /** Whether there is more to load before. */
  hasEarlier: boolean;
  /** The first message the person had not read when they came. */
  firstUnread: string | null;
  showTools: boolean;
}

/** Messages whose words another row already shows. */
const isSpoken = (message: Message): boolean => message.kind === "answer" && message.in_reply_to !== null;

const CONTINUES_MS = 5 * 60_000;

export function arrange(sources: Sources): Item[] {
  const known = new Map(sources.said.map((message) => [message.id, message]));
  const clients = new Set(sources.said.map((message) => message.client_id).filter((id) => id !== null));
  // Between an event and the answer to what we sent, the same words are known under two names.
  const pending = new Set(sources.unsent.map((one) => one.text.trim()));
  const inLog = new Set<string>();
  const rows = sources.rows.filter((row) => {
    if (row.kind !== "message") return sources.showTools || row.kind !== "tools";
    inLog.add(row.id);
    const isTwin = row.sender === "human" && !known.has(row.id) && pending.has(row.text.trim());
    return !isTwin && row.messageKind !== "answer";
  });
  const rest = sources.said.filter((message) => !inLog.has(message.id) && !isSpoken(message)).map(asRow);
  const items: Item[] = sources.hasEarlier ? [{ kind: "earlier", key: "earlier" }] : [];
  let midnight = 0;
  let before: Row | null = null;
  for (const row of merged(rest, rows)) {
    if (Date.parse(row.at) >= midnight) {
      items.push({ kind: "day", key: `day ${dayKey(row.at)}`, label: dayOf(row.at) });
      midnight = new Date(row.at).setHours(24, 0, 0, 0);
      before = null;
    }
    if (row.kind === "message" && row.id === sources.firstUnread) {
      items.push({ kind: "new", key: "new" });
      before = null;
    }
    const message = row.kind === "message" ? (known.get(row.id) ?? sources.details.get(row.id) ?? null) : null;
    items.push(itemOf(row, message, continues(before, row)));
    before = row;
  }
  for (const unsent of sources.unsent) {
    if (!clients.has(unsent.clientId)) items.push({ kind: "unsent", key: unsent.clientId, unsent });
  }
  return items;
}

type RowItem = Extract<Item, { kind: "row" }>;
const made = new WeakMap<Row, RowItem>();

/** The same item as before unless something changed, so that a row is drawn again only then. */
function itemOf(row: Row, message: Message | null, isContinued: boolean): RowItem {
  const known = made.get(row);
  if (known && known.message === message && known.isContinued === isContinued) return known;
  const item: RowItem = { kind: "row", key: row.key, row, message, isContinued };
  made.set(row, item);
  return item;
}

function continues(before: Row | null, row: Row): boolean {
  if (before?.kind !== "message" || row.kind !== "message") return false;
  const isAlike = before.sender === row.sender && before.recipient === row.recipient && plain(before) && plain(row);
  return isAlike && Date.parse(row.at) - Date.parse(before.at) < CONTINUES_MS;
}

const plain = (row: MessageRow): boolean => row.messageKind === "message" || row.messageKind === "nudge";

const asRows = new WeakMap<Message, MessageRow>();

function asRow(message: Message): MessageRow {
  const known = asRows.get(message);
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
  };
  asRows.set(message, row);
  return row;
}

function* merged(left: Row[], right: Row[]): Generator<Row> {
  let i = 0;
  for (const row of right) {
    while (i < left.length && Date.parse(left[i]!.at) <= Date.parse(row.at)) yield left[i++]!;
    yield row;
  }
  while (i < left.length) yield left[i++]!;
}
