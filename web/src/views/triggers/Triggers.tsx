/** Triggers: why a team's agents wake by themselves, when next, and what came of it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { AlarmClock, Bell, CalendarClock, ChevronRight, HeartPulse, Hourglass, type LucideIcon, Pause, Play, Plus, Timer, Trash2, Webhook, Zap } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type Agent, api, explain, type Schemas, type Team, unwrap } from "@/api/client";
import { agentsQuery, keys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capital, fullTime, money, plural } from "@/lib/format";
import { RailButton } from "@/shell/Home";
import { Button, Chip, Dialog, EmptyState, Header, IconButton, Loading, Pills, Trouble } from "@/ui";
import { screenHref, type ScreenProps } from "@/views";
import { usePlace } from "@/views/shared/useSearchParams";
import { Moment, useNow } from "@/views/shared/RelativeTime";
import { tell, tellTrouble } from "@/views/shared/toast";
import { NewTrigger } from "@/views/triggers/NewTrigger";
import { actionWords, whenWords } from "@/views/triggers/describe";

export type Trigger = Schemas["TriggerView"];
type Firing = Schemas["Firing"];

/** Icons of the kinds that have their own. */
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
  const query = useQuery({ queryKey: keys.triggers(team.id), queryFn: () => unwrap(api.GET("/api/teams/{team}/triggers", { params: { path: { team: team.id } } })), refetchInterval: 60_000 });
  const agents = useQuery(agentsQuery(team.id));
  const [place, go] = usePlace();
  const now = useNow(1000);
  const people = new Map((agents.data ?? []).map((agent) => [agent.id, agent]));
  const all = query.data ?? [];
  const living = all.filter((one) => one.status === "active" || one.status === "paused");
  const over = all.filter((one) => one.status === "expired" || one.status === "cancelled");
  const show = place.show === "over" ? "over" : "living";
  const shown = (show === "over" ? over : living).slice().sort(byDue);
  const late = living.filter((one) => one.is_overdue).length;
  const add = (
    <Button look="ink" onClick={() => go({ new: "1" })}>
      <Plus className="size-4" /> New trigger
    </Button>
  );
  return (
    <>
      <Header lead={<RailButton />} title="Triggers" subtitle={[team.name, living.length > 0 && `${living.length} set`, late > 0 && `${late} overdue`].filter(Boolean).join(" · ")}>
        {all.length > 0 && add}
      </Header>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {query.isPending ? (
          <Loading what="Loading the triggers" />
        ) : query.isError && !query.data ? (
          <Trouble title="The triggers could not be loaded" detail={explain(query.error)} onRetry={() => void query.refetch()} />
        ) : all.length === 0 ? (
          <EmptyState icon={<AlarmClock />} title="This team has no triggers" action={add}>
            A trigger sets an agent to work at a time, after a while, when something happens, or when a program outside calls. Agents set their own,
            too: ask the coordinator for “every Monday at nine”.
          </EmptyState>
        ) : (
          <div className="mx-auto max-w-[880px] p-6 max-md:p-3">
            {over.length > 0 && (
              <div className="mb-4">
                <Pills label="Which triggers" value={show} onChange={(next) => go({ show: next === "over" ? "over" : undefined }, true)} options={[["living", `Set (${living.length})`], ["over", `Over (${over.length})`]]} />
              </div>
            )}
            {shown.length === 0 && <p className="py-8 text-center text-sm text-ink-2">No trigger is active. Ended triggers are kept in the list.</p>}
            <ul className="space-y-3">
              {shown.map((trigger) => (
                <li key={trigger.id}>
                  <TriggerCard trigger={trigger} agent={people.get(trigger.agent_id)} team={team} now={now} isOpen={place.trigger === trigger.id} onOpen={(open) => go({ trigger: open ? trigger.id : undefined }, true)} />
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
      {place.new && <NewTrigger team={team} agents={(agents.data ?? []).filter((agent) => agent.retired_at === null)} onClose={() => go({ new: undefined })} />}
    </>
  );
}

function byDue(a: Trigger, b: Trigger): number {
  const at = (one: Trigger) => (one.due_at ? Date.parse(one.due_at) : Infinity);
  return at(a) - at(b) || (a.id < b.id ? 1 : -1);
}

function TriggerCard({ trigger, agent, team, now, isOpen, onOpen }: { trigger: Trigger; agent: Agent | undefined; team: Team; now: number; isOpen: boolean; onOpen: (open: boolean) => void }) {
  const Icon = ICONS[trigger.type] ?? AlarmClock;
  const name = agent ? capital(agent.name) : "its agent";
  const isOver = trigger.status === "expired" || trigger.status === "cancelled";
  return (
    <article className={cx("rounded-md border bg-surface", trigger.is_overdue ? "border-wait-line" : "border-line")}>
      <div className="flex gap-3 p-4 max-md:p-3">
        <Icon className="mt-0.5 size-5 shrink-0 text-ink-2" aria-hidden />
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-2">
            <h2 className="text-sm font-semibold">{whenWords(trigger)}</h2>
            {trigger.is_overdue && <Chip tone="wait">Overdue</Chip>}
            {trigger.status === "paused" && <Chip>Paused</Chip>}
            {trigger.status === "expired" && <Chip>Over</Chip>}
            {trigger.status === "cancelled" && <Chip>Cancelled</Chip>}
            {trigger.promised_to && (
              <Chip>
                <Bell className="size-3" aria-hidden /> Promised
              </Chip>
            )}
          </div>
          <p className="mt-0.5 line-clamp-3 text-sm text-ink-2">{actionWords(trigger.action, trigger.payload, name)}</p>
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
            {!isOver && <Fact name="Next">{trigger.status === "paused" ? "not while it is paused" : trigger.due_at ? <Moment at={trigger.due_at} now={now} /> : noDue(trigger, name)}</Fact>}
            <Fact name="Last">{trigger.fired_at ? <Moment at={trigger.fired_at} now={now} /> : "never"}</Fact>
            <Fact name="Fired">{[plural(trigger.fired, "time"), trigger.skipped > 0 && `${trigger.skipped} skipped`, trigger.gated > 0 && `${trigger.gated} without need`].filter(Boolean).join(", ")}</Fact>
            <Fact name="Cost">{trigger.cost.usd > 0 ? money(trigger.cost.usd) : trigger.cost.calls > 0 ? plural(trigger.cost.calls, "call") : money(0)}</Fact>
          </dl>
          {trigger.ended && <p className="mt-2 text-xs text-ink-3">Over because {trigger.ended}.</p>}
          {trigger.is_overdue && (
            <p className="mt-2 text-xs text-wait">It should have fired by now. The team may be paused, or its agent may be working. It fires when that ends.</p>
          )}
        </div>
        {!isOver && <Acts trigger={trigger} team={team} />}
      </div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => onOpen(!isOpen)}
        className="flex h-8 w-full items-center gap-1.5 rounded-b-md border-t border-line px-4 text-xs text-ink-2 hover:bg-hover pointer-coarse:h-11"
      >
        <ChevronRight className={cx("size-3.5", isOpen && "rotate-90")} aria-hidden /> What came of it
      </button>
      {isOpen && <Firings trigger={trigger} team={team} />}
    </article>
  );
}

function noDue(trigger: Trigger, name: string): string {
  if (trigger.type === "on_event") return "when it happens";
  if (trigger.type === "webhook") return "when it is called";
  return `after ${name} comes to rest`;
}

function Acts({ trigger, team }: { trigger: Trigger; team: Team }) {
  const [asks, setAsks] = useState(false);
  const path = { team: team.id, trigger: trigger.id };
  const after = () => void queryClient.invalidateQueries({ queryKey: keys.triggers(team.id) });
  const change = useMutation({
    mutationFn: (status: "active" | "paused") => unwrap(api.PATCH("/api/teams/{team}/triggers/{trigger}", { params: { path }, body: { status } })),
    onSuccess: (_, status) => {
      after();
      tell(status === "paused" ? "The trigger is paused." : "The trigger is active again.");
    },
    onError: (error) => tellTrouble("That did not work", error),
  });
  const cancel = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/teams/{team}/triggers/{trigger}", { params: { path } })),
    onSuccess: () => {
      setAsks(false);
      after();
      tell("The trigger was cancelled.");
    },
    onError: (error) => tellTrouble("The cancellation failed", error),
  });
  return (
    <div className="flex shrink-0 items-start gap-0.5">
      {trigger.status === "paused" ? (
        <IconButton label="Resume" disabled={change.isPending} onClick={() => change.mutate("active")}>
          <Play className="size-4" />
        </IconButton>
      ) : (
        <IconButton label="Pause" disabled={change.isPending} onClick={() => change.mutate("paused")}>
          <Pause className="size-4" />
        </IconButton>
      )}
      <IconButton label="Cancel this trigger" onClick={() => setAsks(true)}>
        <Trash2 className="size-4" />
      </IconButton>
      <Dialog open={asks} onOpenChange={setAsks} title="Cancel this trigger?" description={`${whenWords(trigger)}. It cannot be set going again; you can make a new one.`}>
        <div className="flex justify-end gap-2">
          <Button onClick={() => setAsks(false)}>Keep it</Button>
          <Button look="fail" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
            Cancel it
          </Button>
        </div>
      </Dialog>
    </div>
  );
}

const OUTCOMES: Record<Firing["outcome"], [string, "done" | "plain" | "fail" | "work"]> = { fired: ["Fired", "done"], skipped: ["Skipped", "plain"], calling: ["Calling", "work"], failed: ["Failed", "fail"] };

function Firings({ trigger, team }: { trigger: Trigger; team: Team }) {
  const query = useQuery({
    queryKey: [...keys.triggers(team.id), trigger.id],
    queryFn: () => unwrap(api.GET("/api/teams/{team}/triggers/{trigger}/firings", { params: { path: { team: team.id, trigger: trigger.id }, query: { limit: 50 } } })),
  });
  const board = screenHref(team.id, "board");
  if (query.isPending) return <Loading what="Reflection" className="p-4" />;
  if (query.isError) return <Trouble title="This could not be loaded" detail={explain(query.error)} onRetry={() => void query.refetch()} />;
  if (query.data.length === 0) return <p className="border-t border-line px-4 py-3 text-sm text-ink-2">It has not fired yet. Each firing, and each skipped one with its reason, is listed here.</p>;
  return (
    <ul className="border-t border-line px-4 py-2 text-sm">
      {query.data.map((firing) => {
        const [words, tone] = OUTCOMES[firing.outcome];
        return (
          <li key={firing.slot} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
            <Chip tone={tone} className="w-[72px] justify-center">{words}</Chip>
            <time dateTime={firing.at} className="tabular text-xs text-ink-2">{fullTime(firing.at)}</time>
            <span className="min-w-0 flex-1 text-xs text-ink-2">
              {firing.reason}
              {(firing.count ?? 1) > 1 && ` (${firing.count} times in a row)`}
            </span>
            {firing.node_id && board && (
              <Link to={`${board}?node=${firing.node_id}` as "/"} className="text-xs underline decoration-line-2 underline-offset-2 hover:decoration-ink">
                The work
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
