/** Triggers: a team's triggers with their next firing, their history and actions. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { AlarmClock, Bell, CalendarClock, ChevronRight, FastForward, HeartPulse, Hourglass, type LucideIcon, Pause, Pencil, Play, Plus, Timer, Trash2, Webhook, Zap } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { type Agent, api, errorMessage, nextKey, type Schemas, type Team, unwrap } from "@/api/client";
import { agentsQuery, queryKeys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { randomId } from "@/lib/randomId";
import { capitalize, fullTime, money, plural } from "@/lib/format";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { Button, Chip, Dialog, EmptyState, IconButton, Loading, Pills, ErrorPanel } from "@/ui";
import { screenHref, type ScreenProps } from "@/lib/screens";
import { useSearchParams } from "@/parts/useSearchParams";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { showError, showNote, showToast } from "@/parts/toast";
import { NewTrigger } from "@/views/triggers/NewTrigger";
import { describeAction, describeTiming } from "@/views/triggers/describe";

export type Trigger = Schemas["TriggerView"];
type Firing = Schemas["Firing"];

/** Icons of trigger types. Other types have the alarm clock. */
const ICONS: Partial<Record<Trigger["type"], LucideIcon>> = {
  scheduled: CalendarClock,
  delayed: Timer,
  at_time: AlarmClock,
  heartbeat: HeartPulse,
  on_event: Zap,
  on_idle: Hourglass,
  webhook: Webhook,
};

export default function Triggers({ team }: ScreenProps) {
  const query = useQuery({ queryKey: queryKeys.triggers(team.id), queryFn: () => unwrap(api.GET("/api/teams/{team}/triggers", { params: { path: { team: team.id } } })), refetchInterval: 60_000 });
  const agents = useQuery(agentsQuery(team.id));
  const [params, setParams] = useSearchParams();
  const now = useNow(1000);
  const members = new Map((agents.data ?? []).map((agent) => [agent.id, agent]));
  const all = query.data ?? [];
  const current = all.filter((one) => one.status === "active" || one.status === "paused");
  const ended = all.filter((one) => one.status === "expired" || one.status === "cancelled");
  const show = params.show === "ended" ? "ended" : "active";
  const shown = (show === "ended" ? ended : current).slice().sort(byDue);
  const overdueCount = current.filter((one) => one.is_overdue).length;
  const add = (
    <Button variant="primary" onClick={() => setParams({ new: "1" })}>
      <Plus className="size-4" /> New trigger
    </Button>
  );
  return (
    <>
      <ScreenHeader team={team} title="Triggers" facts={[current.length > 0 && `${current.length} active`, overdueCount > 0 && `${overdueCount} overdue`]}>
        {all.length > 0 && add}
      </ScreenHeader>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {query.isPending ? (
          <Loading label="Loading the triggers" />
        ) : query.isError && !query.data ? (
          <ErrorPanel title="The triggers could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
        ) : all.length === 0 ? (
          <EmptyState icon={<AlarmClock />} title="This team has no triggers" action={add}>
            A trigger starts an agent at a time, after a delay, when something happens, or when another program calls it. Agents create
            triggers too: ask the coordinator for “every Monday at nine”.
          </EmptyState>
        ) : (
          <div className="mx-auto max-w-[880px] p-6 max-md:p-3">
            {ended.length > 0 && (
              <div className="mb-4">
                <Pills label="Which triggers" value={show} onChange={(next) => setParams({ show: next === "ended" ? "ended" : undefined }, true)} options={[["active", `Active (${current.length})`], ["ended", `Ended (${ended.length})`]]} />
              </div>
            )}
            {shown.length === 0 && <p className="py-8 text-center text-sm text-ink-2">No trigger is active. Ended triggers are kept in the list.</p>}
            <ul className="space-y-3">
              {shown.map((trigger) => (
                <li key={trigger.id}>
                  <TriggerCard trigger={trigger} agent={members.get(trigger.agent_id)} team={team} now={now} isOpen={params.trigger === trigger.id} onOpen={(open) => setParams({ trigger: open ? trigger.id : undefined }, true)} />
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
      {params.new && <NewTrigger team={team} agents={(agents.data ?? []).filter((agent) => agent.retired_at === null)} onClose={() => setParams({ new: undefined })} />}
    </>
  );
}

function byDue(a: Trigger, b: Trigger): number {
  const at = (one: Trigger) => (one.due_at ? Date.parse(one.due_at) : Infinity);
  return at(a) - at(b) || (a.id < b.id ? 1 : -1);
}

function TriggerCard({ trigger, agent, team, now, isOpen, onOpen }: { trigger: Trigger; agent: Agent | undefined; team: Team; now: number; isOpen: boolean; onOpen: (open: boolean) => void }) {
  const Icon = ICONS[trigger.type] ?? AlarmClock;
  const name = agent ? capitalize(agent.name) : "its agent";
  const isEnded = trigger.status === "expired" || trigger.status === "cancelled";
  return (
    <article className={cx("rounded-md border bg-surface", trigger.is_overdue ? "border-wait-line" : "border-line")}>
      <div className="flex gap-3 p-4 max-md:p-3 max-sm:flex-wrap">
        <Icon className="mt-0.5 size-5 shrink-0 text-ink-2" aria-hidden />
        <div className="min-w-0 flex-1 max-sm:basis-3/4">
          <div className="flex flex-wrap items-center gap-2">
            <h2 className="text-sm font-semibold">{describeTiming(trigger)}</h2>
            {trigger.is_overdue && <Chip tone="wait">Overdue</Chip>}
            {trigger.status === "paused" && <Chip>Paused</Chip>}
            {trigger.status === "expired" && <Chip>Ended</Chip>}
            {trigger.status === "cancelled" && <Chip>Cancelled</Chip>}
            {trigger.promised_to && (
              <Chip>
                <Bell className="size-3" aria-hidden /> Promised
              </Chip>
            )}
          </div>
          <p className="mt-0.5 line-clamp-3 text-sm text-ink-2">{describeAction(trigger.action, trigger.payload, name)}</p>
          <dl className="mt-2.5 flex flex-wrap gap-x-6 gap-y-1.5 text-xs">
            <Fact name="Agent">
              {agent ? (
                <Link to="/t/$team/a/$agent" params={{ team: team.id, agent: agent.id }} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
                  {name}
                </Link>
              ) : (
                name
              )}
            </Fact>
            {!isEnded && <Fact name="Next">{trigger.status === "paused" ? "not while the trigger is paused" : isPutOff(trigger, now) ? `put off: ${whyPutOff(trigger)}` : trigger.due_at ? <RelativeTime at={trigger.due_at} now={now} /> : nextWithoutDueTime(trigger, name)}</Fact>}
            <Fact name="Last">{trigger.fired_at ? <RelativeTime at={trigger.fired_at} now={now} /> : "never"}</Fact>
            <Fact name="Fired">{[plural(trigger.fired, "time"), trigger.nothing_to_do > 0 && `nothing to do ${plural(trigger.nothing_to_do, "time")}`, trigger.skipped > 0 && `${trigger.skipped} skipped`, trigger.gated > 0 && `${trigger.gated} not needed`].filter(Boolean).join(", ")}</Fact>
            <Fact name="Cost">{trigger.cost.usd > 0 ? money(trigger.cost.usd) : trigger.cost.calls > 0 ? plural(trigger.cost.calls, "model call") : money(0)}</Fact>
          </dl>
          {trigger.ended && <p className="mt-2 text-xs text-ink-3">Ended because {trigger.ended}.</p>}
          {trigger.is_overdue && (
            <p className="mt-2 text-xs text-wait">It should have fired by now. The team may be paused, or the agent may be working. The trigger fires when that ends.</p>
          )}
        </div>
        {!isEnded && <TriggerActions trigger={trigger} team={team} />}
      </div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => onOpen(!isOpen)}
        className="flex h-8 w-full items-center gap-1.5 rounded-b-md border-t border-line px-4 text-xs text-ink-2 hover:bg-hover pointer-coarse:h-11"
      >
        <ChevronRight className={cx("size-3.5", isOpen && "rotate-90")} aria-hidden /> History
      </button>
      {isOpen && <Firings trigger={trigger} team={team} />}
    </article>
  );
}

/** Whether it was due and still waits, for instance for a budget that is used up. */
function isPutOff(trigger: Trigger, now: number): boolean {
  return !!trigger.gate && !!trigger.due_at && Date.parse(trigger.due_at) <= now;
}

function whyPutOff({ gate }: Trigger): string {
  return gate?.startsWith("budget: ") ? "its budget is used up" : (gate ?? "");
}

function whySkipped(reason: string): string {
  if (reason === "misfire") return "agiraph did not run at that time";
  if (reason === "overlap") return "its earlier work is not finished";
  return reason.startsWith("budget: ") ? "its budget is used up" : reason.replace(/\.$/, "");
}

function nextWithoutDueTime(trigger: Trigger, name: string): string {
  if (trigger.type === "on_event") return "when it happens";
  if (trigger.type === "webhook") return "when it is called";
  return `after ${name} becomes idle`;
}

function TriggerActions({ trigger, team }: { trigger: Trigger; team: Team }) {
  const [isConfirming, setIsConfirming] = useState(false);
  const [isEditing, setIsEditing] = useState(false);
  const runKey = useRef(randomId());
  const path = { team: team.id, trigger: trigger.id };
  const refresh = () => void queryClient.invalidateQueries({ queryKey: queryKeys.triggers(team.id) });
  const run = useMutation({
    mutationFn: () => unwrap(api.POST("/api/teams/{team}/triggers/{trigger}/run", { params: { path, header: { "idempotency-key": runKey.current } } })),
    onSuccess: (firing) => {
      runKey.current = randomId();
      refresh();
      if (firing.outcome === "skipped") showNote(`The trigger did not run: ${whySkipped(firing.reason ?? "")}.`, true);
      else showToast("The trigger runs now. Its schedule stays.");
    },
    onError: (error) => {
      runKey.current = nextKey(runKey.current, error);
      showError("The trigger could not be run", error);
    },
  });
  const change = useMutation({
    mutationFn: (status: "active" | "paused") => unwrap(api.PATCH("/api/teams/{team}/triggers/{trigger}", { params: { path }, body: { status } })),
    onSuccess: (_, status) => {
      refresh();
      showToast(status === "paused" ? "The trigger is paused." : "The trigger is active again.");
    },
    onError: (error) => showError("The trigger could not be changed", error),
  });
  const cancel = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/teams/{team}/triggers/{trigger}", { params: { path } })),
    onSuccess: () => {
      setIsConfirming(false);
      refresh();
      showToast("The trigger was cancelled.");
    },
    onError: (error) => showError("The trigger could not be cancelled", error),
  });
  return (
    <div className="flex shrink-0 items-start gap-0.5 max-sm:w-full max-sm:justify-end">
      <IconButton label="Run now" disabled={run.isPending || team.status === "paused"} onClick={() => run.mutate()}>
        <FastForward className="size-4" />
      </IconButton>
      <IconButton label="Edit" onClick={() => setIsEditing(true)}>
        <Pencil className="size-4" />
      </IconButton>
      {isEditing && <NewTrigger team={team} agents={[]} trigger={trigger} onClose={() => setIsEditing(false)} />}
      {trigger.status === "paused" ? (
        <IconButton label="Resume" disabled={change.isPending} onClick={() => change.mutate("active")}>
          <Play className="size-4" />
        </IconButton>
      ) : (
        <IconButton label="Pause" disabled={change.isPending} onClick={() => change.mutate("paused")}>
          <Pause className="size-4" />
        </IconButton>
      )}
      <IconButton label="Cancel this trigger" onClick={() => setIsConfirming(true)}>
        <Trash2 className="size-4" />
      </IconButton>
      <Dialog open={isConfirming} onOpenChange={setIsConfirming} title="Cancel this trigger?" description={`${describeTiming(trigger)}. A cancelled trigger cannot be resumed, but you can create a new one.`}>
        <div className="flex justify-end gap-2">
          <Button onClick={() => setIsConfirming(false)}>Keep it</Button>
          <Button variant="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
            Cancel it
          </Button>
        </div>
      </Dialog>
    </div>
  );
}

const OUTCOME_LABELS: Record<Firing["outcome"], [string, "done" | "plain" | "fail" | "work"]> = { fired: ["Fired", "done"], skipped: ["Skipped", "plain"], calling: ["Calling", "work"], failed: ["Failed", "fail"] };

function Firings({ trigger, team }: { trigger: Trigger; team: Team }) {
  const query = useQuery({
    queryKey: [...queryKeys.triggers(team.id), trigger.id],
    queryFn: () => unwrap(api.GET("/api/teams/{team}/triggers/{trigger}/firings", { params: { path: { team: team.id, trigger: trigger.id }, query: { limit: 50 } } })),
  });
  if (query.isPending) return <Loading label="Loading the firings" className="p-4" />;
  if (query.isError) return <ErrorPanel title="The firings could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />;
  if (query.data.length === 0) return <p className="border-t border-line px-4 py-3 text-sm text-ink-2">It has not fired yet. Each firing, and each skipped one with its reason, is listed here.</p>;
  return (
    <ul className="border-t border-line px-4 py-2 text-sm">
      {query.data.map((firing) => {
        const [label, tone] = OUTCOME_LABELS[firing.outcome];
        return (
          <li key={firing.slot} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
            <Chip tone={tone} className="w-[72px] justify-center">{label}</Chip>
            <time dateTime={firing.at} className="tabular text-xs text-ink-2">{fullTime(firing.at)}</time>
            <span dir="auto" className="min-w-0 flex-1 text-xs text-ink-2">
              {firing.outcome === "skipped" ? capitalize(whySkipped(firing.reason ?? "")) : firing.reason}
              {(firing.count ?? 1) > 1 && ` (${firing.count} times in a row)`}
            </span>
            {firing.node_id && (
              <Link to={screenHref(team.id, "board", "", `?node=${firing.node_id}`) as "/"} className="text-xs underline decoration-line-2 underline-offset-2 hover:decoration-ink">
                The task
              </Link>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex gap-1.5">
      <dt className="text-ink-3">{name}</dt>
      <dd className="tabular">{children}</dd>
    </div>
  );
}
