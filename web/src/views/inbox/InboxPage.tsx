/** Inbox: items that need an answer first, then the newest ones; the opened item is shown on the right. Many items are selected and put away at once. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Archive, ArchiveRestore, Inbox, ListChecks, MailOpen, X } from "lucide-react";
import { Suspense, useMemo, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { ApiError, errorMessage } from "@/api/client";
import { digestQuery, inboxItemQuery, type InboxList, inboxListQuery, openQuery, overviewQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { TextTeam } from "@/reading/textTeam";
import { titleOf } from "@/parts/entries";
import { ItemGroup } from "@/views/inbox/ItemList";
import { Reader } from "@/views/inbox/Reader";
import { NONE, only, type Selection, toggle, toggleAll } from "@/views/inbox/selection";
import { SnoozeMenu } from "@/views/inbox/SnoozeMenu";
import { type Filing, type Outcome, useFiling } from "@/views/inbox/useFiling";
import { useListKeys } from "@/views/inbox/useListKeys";
import { Button, EmptyState, ErrorPanel, Header, IconButton, Kbd, Loading, Pills } from "@/ui";
import { SidebarButton } from "@/parts/SidebarButton";
import { unansweredItems } from "@/parts/unanswered";

const Digest = lazyChunk(() => import("@/views/inbox/Digest"));

const FILTERS = [
  ["all", "All kinds"],
  ["needs", "Needs you"],
  ["report", "Reports"],
  ["briefing", "Briefings"],
  ["result", "Results"],
  ["failure", "Not done"],
] as const;
type Filter = (typeof FILTERS)[number][0];
type Box = InboxList["box"];
const BOXES = [
  ["inbox", "Inbox"],
  ["snoozed", "Snoozed"],
  ["archived", "Archive"],
] as const satisfies readonly (readonly [Box, string])[];
const EMPTY_TEXTS: Record<Box, string> = {
  inbox: "Questions, approvals, briefings, reports and failures arrive here. Agents write when something needs your attention.",
  snoozed: "Items that you snooze wait here, and come back to the inbox by themselves.",
  archived: "Items that you archive stay here.",
};

/** The items of a box, filtered by the server, page by page. */
function useItems(box: Box, team: string, filter: Filter) {
  const kind = filter === "all" || filter === "needs" ? null : filter;
  const list = useInfiniteQuery(inboxListQuery({ box, team, kind, open: filter === "needs" }));
  const items = useMemo(() => {
    const all = list.data?.pages.flatMap((page) => page.items) ?? [];
    // An item that moves to another page between two requests would be listed twice.
    const unique = [...new Map(all.map((one) => [one.message.id, one])).values()];
    return filter === "needs" ? unansweredItems(unique) : unique;
  }, [list.data, filter]);
  return { list, items };
}

interface Refusals {
  action: string;
  refused: { title: string; reason: string }[];
}

export function InboxPage() {
  const item = useParams({ strict: false }).item ?? null;
  const teams = useQuery(overviewQuery).data ?? [];
  const decisions = useQuery(digestQuery).data?.reduce((sum, team) => sum + team.entries.filter((entry) => entry.kind !== "ask").length + (team.ended ? 1 : 0), 0) ?? 0;
  const isWaitedFor = useQuery({ ...openQuery(), select: ({ open }) => open > 0 }).data;
  const [box, setBox] = useState<Box>("inbox");
  const [filter, setFilter] = useState<Filter>("all");
  const [team, setTeam] = useState("");
  const [selection, setSelection] = useState<Selection>(NONE);
  const [refusals, setRefusals] = useState<Refusals | null>(null);
  const navigate = useNavigate();
  const { list, items } = useItems(box, team, filter);
  const unanswered = box === "inbox" ? unansweredItems(items) : [];
  const rest = box === "inbox" ? items.filter((one) => !one.needs_answer) : items;
  const order = useMemo(() => [...(box === "inbox" ? unansweredItems(items) : []), ...(box === "inbox" ? items.filter((one) => !one.needs_answer) : items)].map((one) => one.message.id), [items, box]);
  const read = useQuery({ ...inboxItemQuery(item ?? ""), enabled: item !== null && item !== "digest" });
  const opened = item === null ? undefined : read.data;
  const shown = only(selection, order);
  const selected = items.filter((one) => shown.ids.has(one.message.id));
  const filing = useFiling((refused: Outcome[], filed) => {
    const title = (id: string) => titleOf(filed.find((one) => one.message.id === id)!);
    setRefusals(refused.length === 0 ? null : { action: `${plural(refused.length, "item")} of ${filed.length} stayed as ${refused.length === 1 ? "it was" : "they were"}:`, refused: refused.map(({ id, reason }) => ({ title: title(id), reason })) });
    setSelection({ ids: new Set(refused.map(({ id }) => id)), anchor: null });
  });
  const file = (given: Filing) => {
    // The opened item leaves the list: the next one is opened in its place.
    const leaves = given.action !== "read" && given.action !== "unread" && given.items.some((one) => one.message.id === item);
    if (leaves) {
      const gone = new Set(given.items.map((one) => one.message.id));
      const next = order.slice(order.indexOf(item!) + 1).find((id) => !gone.has(id));
      void (next ? navigate({ to: "/inbox/$item", params: { item: next } }) : navigate({ to: "/inbox" }));
    }
    filing.mutate(given);
  };
  const select = (id: string, isRange: boolean) => setSelection(toggle(shown, id, order, isRange));
  const show = (change: () => void) => {
    change();
    setSelection(NONE);
    setRefusals(null);
  };
  const showBox = (now: Box) => {
    show(() => setBox(now));
    // What is open belongs to the other box.
    if (now !== box && item !== null) void navigate({ to: "/inbox" });
  };
  const open = (id: string) => void navigate({ to: "/inbox/$item", params: { item: id } });
  useListKeys({ order, item, selected, opened, open, select, file, clear: () => setSelection(NONE), box });

  const unread = items.filter((one) => one.state === "unread" && !one.needs_answer);
  const group = { chosen: item, selected: shown.ids, isInbox: box === "inbox", onSelect: select };
  return (
    <div className="flex min-h-0 flex-1">
      <div className={cx("flex w-[392px] shrink-0 flex-col border-r border-line max-[1180px]:w-full max-[1180px]:border-r-0", item !== null && "max-[1180px]:hidden")}>
        <Header lead={<SidebarButton />} title="Inbox">
          <IconButton label="Mark everything shown as read" disabled={unread.length === 0} onClick={() => file({ action: "read", items: unread })}>
            <MailOpen className="size-4" />
          </IconButton>
        </Header>
        <div className="flex shrink-0 flex-col gap-1.5 border-b border-line px-3 py-2">
          <Pills label="Where" value={box} onChange={showBox} options={BOXES} />
          <div className="grid grid-cols-2 gap-2">
            <Choice label="Kind" value={filter} onChange={(now) => show(() => setFilter(now as Filter))} options={FILTERS} />
            <Choice label="Team" value={team} onChange={(now) => show(() => setTeam(now))} options={[["", "All teams"], ...teams.map(({ id, name }) => [id, name] as const)]} />
          </div>
        </div>
        {order.length > 0 && (
          <div role="toolbar" aria-label="Selected items" className="flex min-h-10 shrink-0 flex-wrap items-center gap-2 border-b border-line py-1 pr-3">
            <label className="flex h-8 w-11 shrink-0 cursor-pointer items-center justify-center pl-2 pointer-coarse:h-11">
              <input
                type="checkbox"
                aria-label="Select all shown"
                checked={shown.ids.size === order.length}
                ref={(element) => {
                  if (element) element.indeterminate = shown.ids.size > 0 && shown.ids.size < order.length;
                }}
                onChange={() => setSelection(toggleAll(shown, order))}
                className="size-4"
              />
            </label>
            {selected.length === 0 ? (
              <span className="text-xs text-ink-3">Select all {order.length} shown</span>
            ) : (
              <>
                <span className="tabular text-xs font-medium">{selected.length} selected</span>
                <span className="flex-1" />
                {box === "inbox" ? (
                  <>
                    <Button size="sm" disabled={filing.isPending} onClick={() => file({ action: "read", items: selected })}>
                      Read
                    </Button>
                    <SnoozeMenu isCompact disabled={filing.isPending} onSnooze={(until) => file({ action: "snooze", items: selected, until })} />
                    <Button size="sm" disabled={filing.isPending} onClick={() => file({ action: "archive", items: selected })}>
                      <Archive className="size-3.5" aria-hidden /> Archive
                    </Button>
                  </>
                ) : (
                  <Button size="sm" disabled={filing.isPending} onClick={() => file({ action: "restore", items: selected })}>
                    <ArchiveRestore className="size-3.5" aria-hidden /> Back to the inbox
                  </Button>
                )}
              </>
            )}
          </div>
        )}
        {refusals && (
          <div role="alert" className="flex shrink-0 items-start gap-2 border-b border-wait-line bg-wait-bg px-4 py-2 text-xs">
            <div className="scroll max-h-32 min-w-0 flex-1">
              <p className="font-medium">{refusals.action}</p>
              <ul>
                {refusals.refused.map(({ title, reason }, at) => (
                  <li key={at} dir="auto">
                    “{title}”: {reason}
                  </li>
                ))}
              </ul>
            </div>
            <IconButton label="Close this note" onClick={() => setRefusals(null)}>
              <X className="size-4" />
            </IconButton>
          </div>
        )}
        <div className="scroll min-h-0 flex-1" tabIndex={0} role="region" aria-label="Items">
          {list.isPending && <Loading label="Loading the inbox" />}
          {list.isError && <ErrorPanel title="The inbox could not be loaded" detail={errorMessage(list.error)} onRetry={() => void list.refetch()} />}
          {list.isSuccess && order.length === 0 && (
            <EmptyState icon={<Inbox />} title={filter === "all" && !team ? "Nothing here" : "Nothing of this kind"}>
              {EMPTY_TEXTS[box]}
            </EmptyState>
          )}
          <ItemGroup name="Needs you" items={unanswered} {...group} />
          {decisions > 0 && box === "inbox" && (
            <Link to="/inbox/$item" params={{ item: "digest" }} aria-current={item === "digest" ? "true" : undefined} className={cx("flex items-center gap-3 px-4 py-2.5 outline-offset-[-2px]", item === "digest" ? "bg-press" : "hover:bg-hover")}>
              <ListChecks className="size-4 shrink-0 text-ink-3" aria-hidden />
              <span className="flex-1 text-base leading-5 font-medium">Needs review</span>
              <span className="tabular text-xs text-ink-3">{decisions}</span>
            </Link>
          )}
          <ItemGroup name={box === "inbox" ? "Latest" : box === "snoozed" ? "Snoozed" : "Archived"} items={rest} {...group} />
          {list.hasNextPage && (
            <Button variant="ghost" className="w-full" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {list.isFetchingNextPage ? "Loading older items…" : "Show older items"}
            </Button>
          )}
        </div>
        <div className="flex h-9 shrink-0 items-center gap-2 border-t border-line px-4 text-2xs text-ink-3 max-md:hidden">
          <Kbd>J</Kbd>
          <Kbd>K</Kbd> move <Kbd className="ml-2">X</Kbd> select <Kbd className="ml-2">E</Kbd> archive <Kbd className="ml-2">1–9</Kbd> answer
        </div>
      </div>
      <div className={cx("flex min-w-0 flex-1 flex-col", item === null && "max-[1180px]:hidden")}>
        {item === null ? (
          <EmptyState icon={<Inbox />} title="Choose something to read">
            {isWaitedFor === undefined ? null : isWaitedFor ? "Items that you have not answered come first." : "Nobody is waiting for your answer."}
          </EmptyState>
        ) : item === "digest" ? (
          <Suspense fallback={<Loading label="Loading what needs review" />}>
            <Digest />
          </Suspense>
        ) : opened ? (
          <TextTeam value={opened.message.team_id}>
            <Reader key={item} item={opened} file={file} />
          </TextTeam>
        ) : read.isPending ? (
          <Loading label="Loading the item" />
        ) : !(read.error instanceof ApiError) || read.error.status !== 404 ? (
          <ErrorPanel title="The item could not be loaded" detail={errorMessage(read.error)} onRetry={() => void read.refetch()} />
        ) : (
          <EmptyState title="This item is not in your inbox" action={<Link to="/inbox" className="text-sm underline">Back to the inbox</Link>} />
        )}
      </div>
    </div>
  );
}

function Choice({ label, value, onChange, options }: { label: string; value: string; onChange: (value: string) => void; options: readonly (readonly [string, string])[] }) {
  return (
    <select dir="auto" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} className="h-8 min-w-0 rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11">
      {options.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  );
}
