/** Deltas: items of the inbox and teams that have changed are fetched by themselves, and put in their places in the lists. */
import type { InfiniteData, Query, QueryClient } from "@tanstack/react-query";
import { api, type InboxRow, type Schemas, unwrap } from "@/api/client";
import type { Event } from "@/live/log";
import { type InboxList, openQuery, overviewQuery, queryClient, queryKeys } from "@/api/queries";

/** The end of a task, after which nobody waits for what it has asked, and its way back into the queue by a retry or an extension. */
const ENDED_OR_QUEUED = /^node\.(completed|partial|failed|cancelled|assigned)$/;
/** The kinds of messages that stand in the inbox. */
const INBOX = new Set(["question", "approval", "briefing", "report", "failure", "result"]);
const ANSWER = "answer:";

/** Return the ids of the inbox items that an event may have changed, and whether it may have changed others, which are counted only. Of what many events name, only items that are shown count. */
export function changedItems({ type, data: given }: Event, known: ReadonlyMap<string, InboxRow>): { ids: string[]; others: boolean } {
  const data = given as Record<string, unknown>;
  const id = String(data.message_id);
  const named = (ids: string[]) => ({ ids: ids.filter((one) => known.has(one)), others: !ids.every((one) => known.has(one)) });
  switch (type) {
    case "message.sent":
    case "question.asked":
      return { ids: INBOX.has(String(data.kind)) && !String(data.recipient).startsWith("agent_") ? [id] : [], others: false };
    case "message.filed":
      return { ids: data.message_ids as string[], others: false };
    case "message.seen":
      return named(data.message_ids as string[]);
    case "question.answered":
      return named([id]);
    case "reply.act_undone":
      return { ids: data.kind === "answered" ? [String(data.about)] : [], others: false };
    case "briefing.rated":
    case "delivery.sent":
    case "delivery.failed":
      return { ids: known.has(id) ? [id] : [], others: false };
    case "node.waiting":
      // Another team may have asked for it: then no message says so.
      return { ids: (data.on as string[]).flatMap((on) => (on.startsWith(ANSWER) ? [on.slice(ANSWER.length)] : [])), others: false };
    default:
      return { ids: ENDED_OR_QUEUED.test(type) ? itemsAbout(String(data.node_id), known) : [], others: false };
  }
}

const itemsAbout = (node: string, known: ReadonlyMap<string, InboxRow>): string[] => [...known.values()].filter(({ message, waiting_work }) => message.node_id === node || waiting_work.some((work) => work.node_id === node)).map(({ message }) => message.id);

type Rows = Schemas["InboxRows"];
type Counts = Schemas["InboxCounts"];
/** More changes at once are not worth fetching one by one. */
const MOST_AT_ONCE = 100;

function belongsTo(row: InboxRow, { box, team, kind, open }: InboxList): boolean {
  const isOfTeam = team === "" || row.message.team_id === team || row.waiting_work.some((work) => work.team_id === team);
  return row.box === box && isOfTeam && (kind === null || row.message.kind === kind) && (!open || row.needs_answer);
}

/** The part of the inbox in which a row stands: first what needs an answer, then what is back from a snooze. */
const partOf = (row: InboxRow, { box }: InboxList): number => (box !== "inbox" ? 2 : row.needs_answer ? 0 : row.snoozed_until !== null && row.state === "unread" ? 1 : 2);

/** Whether a row stands before another one: what needs an answer with the oldest first, all else with the newest first. */
function isBefore(a: InboxRow, b: InboxRow, list: InboxList): boolean {
  const part = partOf(a, list);
  const other = partOf(b, list);
  if (part !== other) return part < other;
  return part === 0 ? a.message.id < b.message.id : a.message.id > b.message.id;
}

/** Return the pages of a list with these rows in the places of those with these ids. What belongs to a page that is not loaded is left out. */
export function withRows(pages: readonly Rows[], ids: ReadonlySet<string>, rows: readonly InboxRow[], list: InboxList): Rows[] {
  const kept = pages.map((page) => ({ ...page, items: page.items.filter((row) => !ids.has(row.message.id)) }));
  for (const row of rows) {
    if (!belongsTo(row, list)) continue;
    const page = kept.find(({ items, cursor }) => cursor === null || items.some((one) => isBefore(row, one, list)));
    if (!page) continue;
    const at = page.items.findIndex((one) => isBefore(row, one, list));
    page.items.splice(at < 0 ? page.items.length : at, 0, row);
  }
  return kept;
}

/** Put these items into all lists that are loaded. */
export function placeRows(client: QueryClient, ids: ReadonlySet<string>, { items, unread, open, newest }: Rows): void {
  const counts = { unread, open, newest };
  for (const query of client.getQueryCache().findAll({ queryKey: queryKeys.inbox })) {
    const [, what, of] = query.queryKey;
    const key = query.queryKey;
    if (what === "item" && ids.has(of as string)) void client.invalidateQueries({ queryKey: key, exact: true });
    const list = of as InboxList;
    // New questions are shown, though there may be others before them that are not loaded.
    if (what === "open") whenLoaded(query, () => client.setQueryData<Rows>(key, (known) => known && { ...withRows([{ ...known, cursor: null }], ids, items, list)[0]!, cursor: known.cursor, ...counts }));
    if (what === "list") whenLoaded(query, () => client.setQueryData<InfiniteData<Rows>>(key, (known) => known && { ...known, pages: withRows(known.pages, ids, items, list) }));
  }
}

/** Do this once a list is there: what is fetched now may be older. */
function whenLoaded(query: Query, act: () => void): void {
  if (query.state.fetchStatus === "idle") act();
  else void query.promise?.then(act, () => {});
}

/** Return the rows of all lists that are loaded, by id. */
export function knownRows(client: QueryClient): Map<string, InboxRow> {
  const rows = new Map<string, InboxRow>();
  for (const query of client.getQueryCache().findAll({ queryKey: queryKeys.inbox })) {
    const data = query.state.data as Rows | InfiniteData<Rows> | undefined;
    const pages = data === undefined ? [] : "pages" in data ? data.pages : "items" in data ? [data] : [];
    for (const page of pages) for (const row of page.items) rows.set(row.message.id, row);
  }
  return rows;
}

/** One task after the other, each with all ids that were given meanwhile. */
function collected(task: (ids: string[]) => Promise<void>, onError: () => void): (ids: Iterable<string>) => Promise<void> {
  const waiting = new Set<string>();
  let running: Promise<void> | null = null;
  const run = async () => {
    while (waiting.size > 0) {
      const ids = [...waiting].slice(0, MOST_AT_ONCE);
      for (const id of ids) waiting.delete(id);
      await task(ids).catch(onError);
    }
    running = null;
  };
  return (ids) => {
    for (const id of ids) waiting.add(id);
    return waiting.size === 0 ? Promise.resolve() : (running ??= run());
  };
}

/** Fetch these items again, and put them in their places. */
export const refreshItems = collected(
  async (ids) => placeRows(queryClient, new Set(ids), await unwrap(api.GET("/api/inbox/rows", { params: { query: { item: ids } } }))),
  () => void queryClient.invalidateQueries({ queryKey: queryKeys.inbox }),
);

/** Fetch the items again that events have changed. Return whether only the counts of others may have changed. */
export function refreshChanged(events: readonly Event[]): boolean {
  const known = knownRows(queryClient);
  const changed = events.map((event) => changedItems(event, known));
  const ids = changed.flatMap((one) => one.ids);
  void refreshItems(ids);
  return ids.length === 0 && changed.some((one) => one.others);
}

/** Fetch what badges say of the inbox. */
export async function refreshCounts(): Promise<void> {
  const counts: Counts | null = await unwrap(api.GET("/api/inbox/counts")).catch(() => null);
  queryClient.setQueryData(openQuery().queryKey, (known) => known && { ...known, ...counts });
}

/** Fetch these teams again, and put them in their places in the list of all teams. */
export const refreshTeams = collected(
  async (ids) => {
    const query = queryClient.getQueryCache().find<Schemas["TeamOverview"][]>({ queryKey: queryKeys.overview, exact: true });
    if (query?.state.data === undefined) return void queryClient.invalidateQueries({ queryKey: queryKeys.overview, exact: true });
    const found = await unwrap(api.GET("/api/overview", { params: { query: { team: ids } } }));
    const changed = new Set(ids);
    whenLoaded(query as unknown as Query, () => queryClient.setQueryData(overviewQuery.queryKey, (teams) => teams && [...teams.filter(({ id }) => !changed.has(id)), ...found].sort(byActivity)));
  },
  () => void queryClient.invalidateQueries({ queryKey: queryKeys.overview, exact: true }),
);

const byActivity = (a: Schemas["TeamOverview"], b: Schemas["TeamOverview"]): number => Date.parse(b.active_at) - Date.parse(a.active_at) || (a.id < b.id ? 1 : -1);
