/** Audit: who sent which changing request and when, newest first, with filters. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { cx } from "@/lib/cx";
import { fullTime } from "@/lib/format";
import { Empty, Section } from "@/views/operations/parts";
import { Button, ErrorPanel, Input, Loading } from "@/ui";

const PAGE = 100;
const KINDS: readonly (readonly [string, string])[] = [
  ["", "Everything"],
  ["/api/teams", "Teams"],
  ["/api/agents", "Agents and messages"],
  ["/api/inbox", "Inbox"],
  ["/api/nodes", "Tasks"],
  ["/api/knowledge", "Knowledge"],
  ["/api/tokens", "Tokens"],
  ["/api/operations", "Operations"],
  ["/api/extensions", "Own tools"],
  ["/api/skills", "Skills"],
  ["/api/channels", "Channels"],
];
const fieldStyle = "h-9 rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-11";

export default function Audit() {
  const [who, setWho] = useState("");
  const [path, setPath] = useState("");
  const [since, setSince] = useState("");
  const [until, setUntil] = useState("");
  const filter = useDeferredValue({ who: who.trim(), path, since, until });
  const time = (local: string) => (local ? { value: new Date(local).toISOString() } : null);
  const query = useInfiniteQuery({
    queryKey: ["audit", filter.who, filter.path, filter.since, filter.until] as const,
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/audit", {
          params: { query: { newest: true, limit: PAGE, after: pageParam, who: filter.who, path: filter.path, since: time(filter.since)?.value, until: time(filter.until)?.value } },
        }),
      ),
    getNextPageParam: (last) => (last.length < PAGE ? undefined : last.at(-1)!.id),
    staleTime: 0,
  });
  const entries = query.data?.pages.flat() ?? [];
  return (
    <Section title="Audit" description="Every request that changed something or tried to, newest first.">
      <div className="flex flex-wrap gap-3 px-4 py-3 text-xs font-medium text-ink-2">
        <label className="flex min-w-[140px] flex-1 flex-col gap-1">
          Who
          <Input dir="auto" value={who} onChange={(event) => setWho(event.target.value)} placeholder="name of a token" className="font-normal text-ink pointer-coarse:h-11" maxLength={200} />
        </label>
        <label className="flex min-w-[140px] flex-1 flex-col gap-1">
          What
          <select value={path} onChange={(event) => setPath(event.target.value)} className={cx(fieldStyle, "text-ink")}>
            {KINDS.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label className="flex flex-col gap-1 max-md:flex-1">
          From
          <input type="datetime-local" value={since} onChange={(event) => setSince(event.target.value)} className={cx(fieldStyle, "text-ink")} />
        </label>
        <label className="flex flex-col gap-1 max-md:flex-1">
          To
          <input type="datetime-local" value={until} onChange={(event) => setUntil(event.target.value)} className={cx(fieldStyle, "text-ink")} />
        </label>
      </div>
      <div className="border-t border-line">
        {query.isPending ? (
          <Loading label="Loading the audit" />
        ) : query.isError && entries.length === 0 ? (
          <ErrorPanel title="The audit could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
        ) : entries.length === 0 ? (
          <Empty>No entry matches.</Empty>
        ) : (
          <ol aria-label="Entries" className="divide-y divide-line">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ol>
        )}
        {query.hasNextPage && (
          <div className="border-t border-line p-2 text-center">
            <Button variant="ghost" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              {query.isFetchingNextPage ? "Loading…" : "Show older entries"}
            </Button>
          </div>
        )}
      </div>
    </Section>
  );
}

function Entry({ entry }: { entry: Schemas["AuditEntry"] }) {
  const isRefused = entry.status >= 400;
  return (
    <li className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-4 py-1.5 text-xs [contain-intrinsic-size:auto_32px] [content-visibility:auto]">
      <time dateTime={entry.at} className="tabular min-w-[148px] shrink-0 whitespace-nowrap text-ink-2">
        {fullTime(entry.at)}
      </time>
      <span dir="auto" className="min-w-0 shrink-0 basis-40 truncate font-medium" title={entry.who}>
        {callerName(entry.who)}
      </span>
      <span dir="ltr" className="min-w-0 flex-1 basis-60 font-mono break-all">
        {entry.method} {entry.path}
      </span>
      <span className={cx("tabular shrink-0", isRefused ? "font-medium text-fail" : "text-ink-3")}>{isRefused ? `${entry.status} refused or failed` : entry.status}</span>
    </li>
  );
}

/** Return who sent a request, in words. The server writes the name of the token and its id. */
export function callerName(who: string): string {
  if (who === "admin") return "Owner's token";
  const name = who.replace(/ \((pass|share)_[0-9a-z]+\)$/, "");
  if (name === "browser") return "Browser session";
  return name === "phone" ? "Phone session" : name;
}
