/** Cost: what a team's model calls cost: totals, over time, and by run, agent, purpose or model. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, Coins } from "lucide-react";
import { Fragment, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { api, errorMessage, type Team, unwrap } from "@/api/client";
import { queryKeys } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize, compactNumber, money, plural } from "@/lib/format";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { lazyChunk } from "@/live/chunks";
import { Button, Dialog, EmptyState, Loading, Meter, Pills, ErrorPanel } from "@/ui";
import { screenHref, type ScreenProps } from "@/lib/screens";
import { useSearchParams } from "@/parts/useSearchParams";
import { LANE_LABELS } from "@/parts/taskStatus";
import { CostByDay } from "@/views/cost/CostByDay";
import { paceText } from "@/views/cost/costDays";
import { addSums, type Bill, byCost, callsText, costRows, type CostSum, costText, hitRateText, joinRuns, modelCalls, NO_COST, otherWork, pathTo, purposeLabel, type TeamCosts, tokensOf, tokensText } from "@/views/cost/costTree";
import { type Budget, LimitUses } from "@/views/settings/LimitUses";

const BudgetForm = lazyChunk(() => import("@/views/settings/BudgetForm"));

type By = "run" | "agent" | "purpose" | "model";

export default function Cost({ team }: ScreenProps) {
  const query = useQuery({ queryKey: queryKeys.cost(team.id), queryFn: () => allCosts(team.id) });
  const [params, setParams] = useSearchParams();
  const by = (params.by ?? "run") as By;
  const costs = query.data;
  return (
    <>
      <ScreenHeader team={team} title="Cost" />
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {query.isPending ? (
          <Loading label="Loading the cost" />
        ) : query.isError && !costs ? (
          <ErrorPanel title="The cost could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
        ) : !costs || isNothing(costs.total) ? (
          <div className="mx-auto max-w-[1080px] space-y-8 p-6 max-md:p-4">
            <BudgetOfGoal team={team} budget={costs?.budget ?? null} total={NO_COST} />
            <EmptyState icon={<Coins />} title="Nothing spent yet">
              Every call to a model is counted here: by run and task, by agent, by what it was for and by model, with tokens and money.
            </EmptyState>
          </div>
        ) : (
          <div className="mx-auto max-w-[1080px] space-y-8 p-6 max-md:p-4">
            <Totals total={costs.total} />
            <BudgetOfGoal team={team} budget={costs.budget ?? null} total={costs.total} />
            <Today />
            <CostByDay team={team.id} />
            <section aria-labelledby="cost-by">
              <div className="mb-3 flex flex-wrap items-center gap-3">
                <h2 id="cost-by" className="text-md font-semibold">
                  Breakdown
                </h2>
                <Pills label="Split by" value={by} onChange={(now) => setParams({ by: now === "run" ? undefined : now }, true)} options={[["run", "By run"], ["agent", "By agent"], ["purpose", "By purpose"], ["model", "By model"]]} />
              </div>
              {by === "run" ? <CostTree costs={costs} team={team.id} highlighted={params.node} /> : <CostTable costs={costs} by={by} />}
            </section>
          </div>
        )}
      </div>
    </>
  );
}

/** Load the costs of a team, with the nodes of all pages. */
async function allCosts(team: string): Promise<TeamCosts> {
  const load = (after: string) => unwrap(api.GET("/api/teams/{team}/cost", { params: { path: { team }, query: { after } } }));
  const first = await load("");
  const pages = [first.runs];
  for (let { next } = first; next; ) {
    const page = await load(next);
    pages.push(page.runs);
    next = page.next;
  }
  return { ...first, runs: joinRuns(pages), next: null };
}

function Totals({ total }: { total: CostSum }) {
  return (
    <div>
      <dl className="flex flex-wrap gap-x-10 gap-y-4 max-md:grid max-md:grid-cols-2 max-md:gap-x-4">
        <Total name="Spent" value={costText(total)} />
        <Total name="Model calls" value={compactNumber(modelCalls(total))} note={total.searches > 0 ? `and ${plural(total.searches, "web search", "web searches")}` : ""} />
        {total.lost > 0 && <Total name="Lost calls" value={compactNumber(total.lost)} note="of them, charged as reserved" />}
        <Total name="Input tokens" value={compactNumber(total.input_tokens)} note={total.cached_tokens > 0 ? `${compactNumber(total.cached_tokens)} of them from the cache` : "none from a cache"} />
        <Total name="Cache hit rate" value={hitRateText(total)} note={total.cache_write_tokens > 0 ? `${compactNumber(total.cache_write_tokens)} tokens stored` : ""} />
        <Total name="Output tokens" value={compactNumber(total.output_tokens)} note={total.thinking_tokens > 0 ? `${compactNumber(total.thinking_tokens)} of them thinking` : ""} />
      </dl>
      {(total.unpriced > 0 || total.lost > 0 || total.estimated > 0) && (
        <p className="mt-3 max-w-[72ch] text-sm text-ink-2">
          {total.estimated > 0 && `The tokens of ${plural(total.estimated, "call")} are estimated, because the server did not count them. `}
          {total.unpriced > 0 && `The price of ${plural(total.unpriced, "call")} is not known: the tokens are counted, the cost is not. `}
          {total.lost > 0 && `A lost call got no answer and may have been charged, so what was reserved for it counts as spent.`}
        </p>
      )}
    </div>
  );
}

/** Whether nothing was booked: neither a call, nor one whose answer was lost. */
const isNothing = (total: CostSum): boolean => modelCalls(total) === 0 && total.searches === 0 && total.usd === 0;

/** What is left of the limits of the team's goal, and what the team has spent apart from it. */
function BudgetOfGoal({ team, budget, total }: { team: Team; budget: Budget | null; total: CostSum }) {
  const [isOpen, setIsOpen] = useState(false);
  if (!budget) return null;
  const other = otherWork(total, budget);
  return (
    <section aria-labelledby="cost-budget">
      <div className="mb-3 flex flex-wrap items-baseline gap-x-3">
        <h2 id="cost-budget" className="text-md font-semibold">
          Budget of the goal
        </h2>
        <button type="button" onClick={() => setIsOpen(true)} aria-haspopup="dialog" className="inline-flex cursor-pointer items-center text-sm underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11">
          Raise
        </button>
      </div>
      <LimitUses budget={budget} />
      {(other.usd > 0 || other.tokens > 0) && (
        <p className="mt-4 max-w-[72ch] text-sm text-ink-2">
          <span className="tabular font-medium text-ink">Other work: {other.usd > 0 && `${money(other.usd)}, `}{compactNumber(other.tokens)} tokens.</span> Replies, tasks from your messages and earlier goals. The budget of the goal does not cover them.
        </p>
      )}
      <Dialog open={isOpen} onOpenChange={setIsOpen} title="Change the budget of the goal" description={`The limits of the goal of ${team.name}, in total. None can be lower than what is used. Work that a used-up limit has stopped goes on by itself. Tasks from your messages have limits of their own.`}>
        <Suspense>{isOpen && <BudgetForm team={team.id} budget={budget} onSaved={() => setIsOpen(false)} />}</Suspense>
      </Dialog>
    </section>
  );
}

/** What all teams have spent today, against the daily limit. */
function Today() {
  const { data } = useQuery({ queryKey: ["day-cost"], queryFn: () => unwrap(api.GET("/api/cost")), refetchInterval: 60_000 });
  const limit = data?.limit_usd ?? null;
  const pace = data ? paceText(data, money) : "";
  if (!data || (limit === null && data.usd === 0)) return null;
  return (
    <section aria-label="Today" className={cx("max-w-[440px] rounded-md border p-3 text-sm", data.is_reached ? "border-wait-line bg-wait-bg" : "border-line")}>
      <p className={cx("flex justify-between gap-3", limit !== null && "mb-1.5")}>
        <span className="font-medium">Today, all teams</span>
        <span className="tabular">
          {money(data.usd)}
          {limit !== null && <span className="text-ink-3"> of {money(limit)}</span>}
        </span>
      </p>
      {limit !== null && <Meter value={data.usd} max={limit} tone={data.is_reached ? "wait" : "plain"} label="Today's spend against the daily limit" />}
      {pace && <p className="tabular mt-1.5 text-xs text-ink-2">{pace}</p>}
      {data.allowed_usd > 0 && <p className="mt-1.5 text-xs text-ink-2">You allowed {money(data.allowed_usd)} more today.</p>}
      {data.is_reached && (
        <p className="mt-1.5">
          The daily limit is reached, so paid model calls wait until tomorrow (UTC) or until you allow more.{" "}
          <Link to="/inbox" className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
            Answer in the inbox
          </Link>
        </p>
      )}
    </section>
  );
}

function Total({ name, value, note = "" }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt className="text-xs text-ink-3">{name}</dt>
      <dd className="tabular text-xl font-semibold">{value}</dd>
      {note && <dd className="tabular text-xs text-ink-2">{note}</dd>}
    </div>
  );
}

const HEADER_CELL = "px-3 py-2 base:text-left text-xs font-medium text-ink-3";
const NUMBER_CELL = "tabular px-3 py-1.5 text-right whitespace-nowrap";

function CostTree({ costs, team, highlighted }: { costs: TeamCosts; team: string; highlighted: string | undefined }) {
  const runs = costs.runs as Bill[];
  const path = useMemo(() => (highlighted ? pathTo(runs, highlighted) : []), [runs, highlighted]);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(runs.length <= 3 ? runs.map((run) => run.node_id) : []));
  useEffect(() => setOpen((now) => (path.length > 0 ? new Set([...now, ...path]) : now)), [path]);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => row.current?.scrollIntoView({ block: "center" }), [highlighted]);
  const rows = costRows(runs, open, costs.total);
  const [limit, setLimit] = useState(200);
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
            <th scope="col" className={HEADER_CELL}>Run and task</th>
            <th scope="col" className={cx(HEADER_CELL, "max-md:hidden")}>Agent</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right")} title="Model calls, also those without an answer">Calls</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right max-md:hidden")}>Tokens</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right max-sm:hidden")}>Cache hits</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right")}>Cost</th>
            <th scope="col" className={cx(HEADER_CELL, "w-28 max-md:hidden")}>Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, limit).map(({ node, depth, hasMore, isOpen, share }) => {
            const total = node.total;
            const isHighlighted = node.node_id === highlighted;
            const href = node.lane === "work" ? screenHref(team, "board", "", `?node=${node.node_id}`) : null;
            return (
              <Fragment key={node.node_id}>
                <tr ref={isHighlighted ? row : undefined} className={cx("border-t border-line", isHighlighted && "bg-press")}>
                  <td className="max-w-0 min-w-44 py-1 pr-3 md:w-1/2" style={{ paddingLeft: 8 + Math.min(depth, 8) * 18 }}>
                    <span className="flex items-center gap-1">
                      <button
                        type="button"
                        aria-expanded={hasMore ? isOpen : undefined}
                        aria-label={isOpen ? `Collapse ${node.title}` : `Expand ${node.title}`}
                        disabled={!hasMore}
                        onClick={() => toggle(node.node_id)}
                        className={cx("flex size-6 shrink-0 items-center justify-center rounded-xs text-ink-3 hover:bg-hover pointer-coarse:size-10", !hasMore && "invisible")}
                      >
                        <ChevronRight className={cx("size-3.5", isOpen && "rotate-90")} aria-hidden />
                      </button>
                      {href ? (
                        <Link dir="auto" to={href as "/"} className={cx("truncate hover:underline", depth === 0 && "font-medium")} title={node.title}>
                          {node.title}
                        </Link>
                      ) : (
                        <span dir="auto" className="truncate text-ink-2" title={node.title}>{node.title}</span>
                      )}
                      {node.lane !== "work" && LANE_LABELS[node.lane] !== node.title && <span className="shrink-0 text-xs text-ink-3">{LANE_LABELS[node.lane]}</span>}
                    </span>
                  </td>
                  <td className="max-w-40 truncate px-3 text-ink-2 max-md:hidden">{capitalize(node.agent)}</td>
                  <CostCells sum={total} share={share} />
                </tr>
                {isOpen && node.below.length > 0 && <OwnCostRow node={node} depth={depth + 1} total={costs.total} />}
                {isOpen && node.below.length === 0 && <CostLineRows node={node} depth={depth + 1} />}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {rows.length > limit && (
        <Button variant="ghost" className="m-2" onClick={() => setLimit(limit * 3)}>
          {rows.length - limit} more
        </Button>
      )}
    </div>
  );
}

function CostCells({ sum, share }: { sum: CostSum; share: number | null }) {
  return (
    <>
      <td className={cx(NUMBER_CELL, "text-ink-2")}>
        {callsText(sum)}
        {sum.lost > 0 && <span className="block text-xs text-ink-3">{compactNumber(sum.lost)} lost</span>}
      </td>
      <td className={cx(NUMBER_CELL, "text-ink-2 max-md:hidden")} title={tokensText(sum)}>
        {compactNumber(tokensOf(sum))}
      </td>
      <td className={cx(NUMBER_CELL, "text-ink-2 max-sm:hidden")} title={tokensText(sum)}>
        {hitRateText(sum)}
      </td>
      <td className={NUMBER_CELL}><span className={cx((sum.estimated > 0 || sum.unpriced > 0) && "text-ink-3")}>{costText(sum)}</span></td>
      <td className="px-3 max-md:hidden">{share !== null && <ShareBar fraction={share} />}</td>
    </>
  );
}

const ShareBar = ({ fraction }: { fraction: number }) => (
  <span className="flex items-center gap-2">
    <span className="h-1.5 flex-1 overflow-hidden rounded-full bg-line" aria-hidden>
      <span className="block h-full rounded-full bg-ink-2" style={{ width: `${fraction * 100}%` }} />
    </span>
    <span className="tabular w-9 text-right text-xs text-ink-3">{Math.round(fraction * 100)}%</span>
  </span>
);

/** The row of a task's own cost, without its subtasks. */
function OwnCostRow({ node, depth, total }: { node: Bill; depth: number; total: CostSum }) {
  const lines = node.lines ?? [];
  if (lines.length === 0) return null;
  const ownSum = lines.reduce<CostSum>((all, { sum }) => addSums(all, sum), NO_COST);
  return (
    <tr className="border-t border-line text-ink-2">
      <td style={{ paddingLeft: 36 + Math.min(depth, 8) * 18 }} className="py-1.5">The task itself</td>
      <td className="max-md:hidden" />
      <CostCells sum={ownSum} share={total.usd > 0 ? ownSum.usd / total.usd : null} />
    </tr>
  );
}

function CostLineRows({ node, depth }: { node: Bill; depth: number }) {
  return (
    <>
      {(node.lines ?? []).map((line, at) => (
        <tr key={at} className="border-t border-line text-ink-2">
          <td style={{ paddingLeft: 36 + Math.min(depth, 8) * 18 }} className="py-1.5">
            {purposeLabel(line.purpose)} <span className="text-xs text-ink-3">{line.model}</span>
          </td>
          <td className="max-md:hidden" />
          <CostCells sum={line.sum} share={null} />
        </tr>
      ))}
    </>
  );
}

function CostTable({ costs, by }: { costs: TeamCosts; by: Exclude<By, "run"> }) {
  const groups = { agent: costs.by_agent, purpose: costs.by_purpose, model: costs.by_model }[by];
  const rows = Object.entries(groups ?? {}).sort(([, a], [, b]) => byCost(a, b));
  const all = tokensOf(costs.total);
  const share = (sum: CostSum) => (costs.total.usd > 0 ? sum.usd / costs.total.usd : all > 0 ? tokensOf(sum) / all : 0);
  const title = { agent: "Agent", purpose: "Purpose", model: "Model" }[by];
  const name = (key: string) => (by === "agent" ? capitalize(key) : by === "purpose" ? purposeLabel(key) : key);
  return (
    <div className="scroll rounded-md border border-line" tabIndex={0} role="region" aria-label={`Cost by ${by}`}>
      <table className="w-full text-sm">
        <thead className="bg-sunken">
          <tr>
            <th dir="auto" scope="col" className={HEADER_CELL}>{title}</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right")} title="Model calls, also those without an answer">Calls</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right max-md:hidden")}>Tokens</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right max-sm:hidden")}>Cache hits</th>
            <th scope="col" className={cx(HEADER_CELL, "text-right")}>Cost</th>
            <th scope="col" className={cx(HEADER_CELL, "w-44 max-md:hidden")}>Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, sum]) => (
            <tr key={key} className="border-t border-line">
              <th scope="row" className="px-3 py-2 text-left font-normal break-all">{name(key)}</th>
              <CostCells sum={sum} share={share(sum)} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
