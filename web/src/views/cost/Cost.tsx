/** Cost: what a team's work has come to, as a tree and over time. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, Coins } from "lucide-react";
import { Fragment, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api, explain, type Schemas, type Team, unwrap } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capital, count, money, plural } from "@/lib/format";
import { RailButton } from "@/shell/Home";
import { Button, EmptyState, Header, Loading, Pills, Trouble } from "@/ui";
import { screenHref, type ScreenProps } from "@/views";
import { usePlace } from "@/views/shared/useSearchParams";
import { LANES } from "@/views/shared/taskStatus";
import { type Bill, billRows, byWeight, type Sum, tokensOf, trail } from "@/views/cost/costTree";
import { slots, type Spent } from "@/views/cost/timeBuckets";

type Costs = Schemas["TeamCosts"];
type By = "run" | "agent" | "purpose" | "model";
const PURPOSES: Record<string, string> = { work: "Work", reply: "Replies", reflection: "Reflection", compaction: "Summaries", briefing: "Briefings", harvest: "Reflection" };

export default function Cost({ team }: ScreenProps) {
  const query = useQuery({ queryKey: keys.cost(team.id), queryFn: () => unwrap(api.GET("/api/teams/{team}/cost", { params: { path: { team: team.id } } })) });
  const [place, go] = usePlace();
  const by = (place.by ?? "run") as By;
  const costs = query.data;
  return (
    <>
      <Header lead={<RailButton />} title="Cost" subtitle={team.name} />
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {query.isPending ? (
          <Loading what="Loading the cost" />
        ) : query.isError && !costs ? (
          <Trouble title="The cost could not be loaded" detail={explain(query.error)} onRetry={() => void query.refetch()} />
        ) : !costs || costs.total.calls === 0 ? (
          <EmptyState icon={<Coins />} title="Nothing spent yet">
            Every call to a model is counted here: by run and task, by agent, by what it was for and by model, with tokens and money.
          </EmptyState>
        ) : (
          <div className="mx-auto max-w-[1080px] space-y-8 p-6 max-md:p-4">
            <Totals total={costs.total} />
            <OverTime team={team} />
            <section aria-labelledby="cost-by">
              <div className="mb-3 flex flex-wrap items-center gap-3">
                <h2 id="cost-by" className="text-md font-semibold">
                  Breakdown
                </h2>
                <Pills label="Split by" value={by} onChange={(now) => go({ by: now === "run" ? undefined : now }, true)} options={[["run", "By run"], ["agent", "By agent"], ["purpose", "By purpose"], ["model", "By model"]]} />
              </div>
              {by === "run" ? <Tree costs={costs} team={team.id} wanted={place.node} /> : <Split costs={costs} by={by} />}
            </section>
          </div>
        )}
      </div>
    </>
  );
}

function Totals({ total }: { total: Sum }) {
  const cached = total.input_tokens > 0 ? Math.round((100 * total.cached_tokens) / total.input_tokens) : 0;
  return (
    <div>
      <dl className="flex flex-wrap gap-x-10 gap-y-4">
        <Figure name="Spent" value={money(total.usd)} />
        <Figure name="Model calls" value={count(total.calls)} />
        <Figure name="Tokens read" value={count(total.input_tokens)} note={cached > 0 ? `${cached}% from cache` : ""} />
        <Figure name="Tokens written" value={count(total.output_tokens)} />
      </dl>
      {(total.unpriced > 0 || total.lost > 0) && (
        <p className="mt-3 max-w-[72ch] text-sm text-ink-2">
          {total.unpriced > 0 && `For ${plural(total.unpriced, "call")} no price is known; they count tokens, but no money. `}
          {total.lost > 0 && `${plural(total.lost, "call")} got lost in a crash and may have been paid for twice.`}
        </p>
      )}
    </div>
  );
}

function Figure({ name, value, note = "" }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt className="text-xs text-ink-3">{name}</dt>
      <dd className="tabular text-xl font-semibold">
        {value} {note && <span className="text-xs font-normal text-ink-3">{note}</span>}
      </dd>
    </div>
  );
}

const PAGE = 500;
const PAGES_AT_FIRST = 6;

/** Each call to a model, from the team's events; newest pages first, as far as somebody wants to look back. */
function useSpent(team: Team) {
  const agents = useQuery(agentsQuery(team.id));
  const head = team.head;
  const first = useRef(head);
  const query = useInfiniteQuery({
    queryKey: ["spent", team.id, first.current],
    initialPageParam: first.current,
    queryFn: async ({ pageParam: end }) => {
      const from = Math.max(0, end - PAGE);
      const events = await unwrap(api.GET("/api/teams/{team}/events", { params: { path: { team: team.id }, query: { after: from, limit: Math.max(1, end - from) } } }));
      return { from, events: events.filter((event) => event.type === "turn.added") };
    },
    getNextPageParam: (last) => (last.from > 0 ? last.from : undefined),
    staleTime: 30_000,
  });
  // What has happened since this was opened.
  const since = useQuery({
    queryKey: ["spent-since", team.id, first.current, head],
    queryFn: () => unwrap(api.GET("/api/teams/{team}/events", { params: { path: { team: team.id }, query: { after: first.current, limit: PAGE } } })),
    enabled: head > first.current,
    placeholderData: keepPreviousData,
  });
  const { hasNextPage, isFetchingNextPage, fetchNextPage, data } = query;
  const pages = data?.pages.length ?? 0;
  useEffect(() => {
    if (pages > 0 && pages < PAGES_AT_FIRST && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [pages, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const names = useMemo(() => new Map((agents.data ?? []).map((agent) => [agent.id, agent.name])), [agents.data]);
  const spent = useMemo(
    () =>
      [...(data?.pages ?? []).flatMap((page) => page.events), ...(since.data ?? []).filter((event) => event.type === "turn.added")].map((event): Spent => {
        const told = event.data as { agent_id: string; usd: number | null; tokens: number };
        return { at: Date.parse(event.at), usd: told.usd ?? 0, tokens: told.tokens, agent: names.get(told.agent_id) ?? "someone" };
      }),
    [data, since.data, names],
  );
  return { ...query, spent };
}

function OverTime({ team }: { team: Team }) {
  const { spent, isPending, isError, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage, data } = useSpent(team);
  const hasMoney = spent.some((one) => one.usd > 0);
  const measure = hasMoney ? "usd" : "tokens";
  const { width, slots: found } = useMemo(() => slots(spent, measure), [spent, measure]);
  const say = (value: number) => (measure === "usd" ? money(value) : `${count(value)} tokens`);
  const most = Math.max(...found.map((slot) => slot[measure]), 0);
  const label = (at: number) =>
    new Date(at).toLocaleString(undefined, width >= 24 * 3_600_000 ? { day: "numeric", month: "short" } : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  let body: ReactNode;
  if (isPending) body = <Loading what="Loading the cost over time" className="p-0" />;
  else if (isError && spent.length === 0) body = <Trouble title="The cost over time could not be loaded" detail={explain(error)} onRetry={() => void refetch()} />;
  else if (found.length === 0) body = <p className="text-sm text-ink-2">None of the newest events is a call to a model.</p>;
  else {
    body = (
      <figure>
        <div className="flex gap-3">
          <div className="tabular flex h-[140px] w-16 shrink-0 flex-col justify-between text-right text-xs text-ink-3" aria-hidden>
            <span>{say(most)}</span>
            <span>0</span>
          </div>
          <ul className="flex h-[140px] min-w-0 flex-1 items-end gap-px border-b border-line-2" aria-label="Cost over time">
            {found.map((slot) => (
              <li key={slot.from} className="group relative flex h-full max-w-12 min-w-0 flex-1 items-end">
                <span
                  className={cx("w-full rounded-t-[2px]", slot[measure] > 0 ? "bg-ink-2 group-hover:bg-ink" : "")}
                  style={{ height: most > 0 ? `${Math.max(slot[measure] > 0 ? 2 : 0, (100 * slot[measure]) / most)}%` : 0 }}
                  title={`${label(slot.from)} · ${say(slot[measure])} · ${plural(slot.calls, "call")}${slot.parts.length > 0 ? `\n${slot.parts.slice(0, 6).map((part) => `${capital(part.agent)} ${say(part.value)}`).join("\n")}` : ""}`}
                />
                <span className="sr-only">
                  {label(slot.from)}: {say(slot[measure])}, {plural(slot.calls, "call")}
                </span>
              </li>
            ))}
          </ul>
        </div>
        <figcaption className="tabular mt-1 flex justify-between pl-[76px] text-xs text-ink-3">
          <span>{label(found[0]!.from)}</span>
          <span>{label(found.at(-1)!.from)}</span>
        </figcaption>
      </figure>
    );
  }
  const reached = data?.pages.at(-1)?.from ?? 0;
  return (
    <section aria-labelledby="cost-time">
      <h2 id="cost-time" className="mb-3 text-md font-semibold">
        Over time {found.length > 0 && <span className="text-sm font-normal text-ink-3">per {widthWords(width)}</span>}
      </h2>
      {body}
      {hasNextPage && (data?.pages.length ?? 0) >= PAGES_AT_FIRST && (
        <p className="mt-2 flex items-center gap-3 text-xs text-ink-3">
          This is what happened since event {reached}.
          <Button size="sm" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {isFetchingNextPage ? "Loading earlier calls…" : "Show earlier calls"}
          </Button>
        </p>
      )}
    </section>
  );
}

function widthWords(width: number): string {
  const minutes = width / 60_000;
  if (minutes < 60) return minutes === 1 ? "minute" : `${minutes} minutes`;
  if (minutes < 1440) return minutes === 60 ? "hour" : `${minutes / 60} hours`;
  return minutes === 1440 ? "day" : minutes === 10_080 ? "week" : "month";
}

const HEAD = "px-3 py-2 text-left text-xs font-medium text-ink-3";
const NUMBER = "tabular px-3 py-1.5 text-right whitespace-nowrap";

function Tree({ costs, team, wanted }: { costs: Costs; team: string; wanted: string | undefined }) {
  const way = useMemo(() => (wanted ? trail(costs.runs, wanted) : []), [costs.runs, wanted]);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(costs.runs.length <= 3 ? costs.runs.map((run) => run.node_id) : []));
  useEffect(() => setOpen((now) => (way.length > 0 ? new Set([...now, ...way]) : now)), [way]);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => row.current?.scrollIntoView({ block: "center" }), [wanted]);
  const rows = billRows(costs.runs, open, costs.total);
  const [most, setMost] = useState(200);
  const toggle = (id: string) =>
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <div className="scroll rounded-md border border-line" tabIndex={0} role="region" aria-label="Cost by run">
      <table className="w-full text-sm">
        <thead className="bg-sunken">
          <tr>
            <th scope="col" className={HEAD}>Run and work</th>
            <th scope="col" className={cx(HEAD, "max-md:hidden")}>Agent</th>
            <th scope="col" className={cx(HEAD, "text-right")}>Calls</th>
            <th scope="col" className={cx(HEAD, "text-right max-md:hidden")}>Tokens</th>
            <th scope="col" className={cx(HEAD, "text-right")}>Cost</th>
            <th scope="col" className={cx(HEAD, "w-28 max-md:hidden")}>Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map(({ bill, depth, hasMore, isOpen, share }) => {
            const total = bill.total!;
            const isWanted = bill.node_id === wanted;
            const href = bill.lane === "work" ? screenHref(team, "board") : null;
            return (
              <Fragment key={bill.node_id}>
                <tr ref={isWanted ? row : undefined} className={cx("border-t border-line", isWanted && "bg-press")}>
                  <td className="max-w-0 min-w-44 py-1 pr-3 md:w-1/2" style={{ paddingLeft: 8 + Math.min(depth, 8) * 18 }}>
                    <span className="flex items-center gap-1">
                      <button
                        type="button"
                        aria-expanded={hasMore ? isOpen : undefined}
                        aria-label={isOpen ? `Fold ${bill.title}` : `Unfold ${bill.title}`}
                        disabled={!hasMore}
                        onClick={() => toggle(bill.node_id)}
                        className={cx("flex size-6 shrink-0 items-center justify-center rounded-xs text-ink-3 hover:bg-hover pointer-coarse:size-10", !hasMore && "invisible")}
                      >
                        <ChevronRight className={cx("size-3.5", isOpen && "rotate-90")} aria-hidden />
                      </button>
                      {href ? (
                        <Link to={`${href}?node=${bill.node_id}` as "/"} className={cx("truncate hover:underline", depth === 0 && "font-medium")} title={bill.title}>
                          {bill.title}
                        </Link>
                      ) : (
                        <span className="truncate text-ink-2" title={bill.title}>{bill.title}</span>
                      )}
                      {bill.lane !== "work" && LANES[bill.lane] !== bill.title && <span className="shrink-0 text-xs text-ink-3">{LANES[bill.lane]}</span>}
                    </span>
                  </td>
                  <td className="max-w-40 truncate px-3 text-ink-2 max-md:hidden">{capital(bill.agent)}</td>
                  <Numbers sum={total} share={share} />
                </tr>
                {isOpen && (bill.below ?? []).length > 0 && <Own bill={bill} depth={depth + 1} total={costs.total} />}
                {isOpen && (bill.below ?? []).length === 0 && <Lines bill={bill} depth={depth + 1} />}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {rows.length > most && (
        <Button look="plain" className="m-2" onClick={() => setMost(most * 3)}>
          {rows.length - most} more
        </Button>
      )}
    </div>
  );
}

function Numbers({ sum, share }: { sum: Sum; share: number | null }) {
  return (
    <>
      <td className={cx(NUMBER, "text-ink-2")}>{count(sum.calls)}</td>
      <td className={cx(NUMBER, "text-ink-2 max-md:hidden")}>{count(tokensOf(sum))}</td>
      <td className={NUMBER}>{sum.usd > 0 || sum.unpriced === 0 ? money(sum.usd) : <span className="text-ink-3">no price</span>}</td>
      <td className="px-3 max-md:hidden">{share !== null && <Share part={share} />}</td>
    </>
  );
}

const Share = ({ part }: { part: number }) => (
  <span className="flex items-center gap-2">
    <span className="h-1.5 flex-1 overflow-hidden rounded-full bg-line" aria-hidden>
      <span className="block h-full rounded-full bg-ink-2" style={{ width: `${part * 100}%` }} />
    </span>
    <span className="tabular w-9 text-right text-xs text-ink-3">{Math.round(part * 100)}%</span>
  </span>
);

/** What the work itself cost, apart from what is below it. */
function Own({ bill, depth, total }: { bill: Bill; depth: number; total: Sum }) {
  const lines = bill.lines ?? [];
  if (lines.length === 0) return null;
  const own = lines.reduce<Sum>((all, { sum }) => added(all, sum), { calls: 0, lost: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, usd: 0, unpriced: 0 });
  return (
    <tr className="border-t border-line text-ink-2">
      <td style={{ paddingLeft: 36 + Math.min(depth, 8) * 18 }} className="py-1.5">The work itself</td>
      <td className="max-md:hidden" />
      <Numbers sum={own} share={total.usd > 0 ? own.usd / total.usd : null} />
    </tr>
  );
}

const added = (a: Sum, b: Sum): Sum => ({
  calls: a.calls + b.calls,
  lost: a.lost + b.lost,
  input_tokens: a.input_tokens + b.input_tokens,
  output_tokens: a.output_tokens + b.output_tokens,
  cached_tokens: a.cached_tokens + b.cached_tokens,
  usd: a.usd + b.usd,
  unpriced: a.unpriced + b.unpriced,
});

function Lines({ bill, depth }: { bill: Bill; depth: number }) {
  return (
    <>
      {(bill.lines ?? []).map((line, at) => (
        <tr key={at} className="border-t border-line text-ink-2">
          <td style={{ paddingLeft: 36 + Math.min(depth, 8) * 18 }} className="py-1.5">
            {purpose(line.purpose)} <span className="text-xs text-ink-3">{line.model}</span>
          </td>
          <td className="max-md:hidden" />
          <Numbers sum={line.sum} share={null} />
        </tr>
      ))}
    </>
  );
}

const purpose = (name: string): string => PURPOSES[name] ?? capital(name.replaceAll("_", " "));

function Split({ costs, by }: { costs: Costs; by: Exclude<By, "run"> }) {
  const groups = { agent: costs.by_agent, purpose: costs.by_purpose, model: costs.by_model }[by];
  const rows = Object.entries(groups).sort(([, a], [, b]) => byWeight(a, b));
  const all = tokensOf(costs.total);
  const share = (sum: Sum) => (costs.total.usd > 0 ? sum.usd / costs.total.usd : all > 0 ? tokensOf(sum) / all : 0);
  const title = { agent: "Agent", purpose: "Purpose", model: "Model" }[by];
  const name = (key: string) => (by === "agent" ? capital(key) : by === "purpose" ? purpose(key) : key);
  return (
    <div className="scroll rounded-md border border-line" tabIndex={0} role="region" aria-label={`Cost by ${by}`}>
      <table className="w-full text-sm">
        <thead className="bg-sunken">
          <tr>
            <th scope="col" className={HEAD}>{title}</th>
            <th scope="col" className={cx(HEAD, "text-right")}>Calls</th>
            <th scope="col" className={cx(HEAD, "text-right max-md:hidden")}>Tokens</th>
            <th scope="col" className={cx(HEAD, "text-right")}>Cost</th>
            <th scope="col" className={cx(HEAD, "w-44 max-md:hidden")}>Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, sum]) => (
            <tr key={key} className="border-t border-line">
              <th scope="row" className="px-3 py-2 text-left font-normal break-all">{name(key)}</th>
              <Numbers sum={sum} share={share(sum)} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
