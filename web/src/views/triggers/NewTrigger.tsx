/** NewTrigger: the dialog that creates a trigger or changes one, and the secret of a new webhook. */
import { useMutation } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { type FormEvent, useState } from "react";
import { type Agent, api, errorMessage, type Schemas, type Team, unwrap } from "@/api/client";
import { queryKeys, queryClient } from "@/api/queries";
import { copyText } from "@/lib/clipboard";
import { capitalize } from "@/lib/format";
import { hash } from "@/lib/hash";
import { randomId } from "@/lib/randomId";
import { useStoredDraft } from "@/lib/storedDraft";
import { Button, Dialog, Input, Textarea } from "@/ui";
import { Field, Select } from "@/parts/fields";
import { showToast } from "@/parts/toast";
import { describeTiming } from "@/views/triggers/describe";

type Trigger = Schemas["TriggerView"];
type Type = Schemas["NewTrigger"]["type"];
type Config = Record<string, unknown>;
const TYPE_OPTIONS: [Type, string][] = [
  ["scheduled", "On a schedule"],
  ["delayed", "Once, after a delay"],
  ["at_time", "Once, at a time"],
  ["heartbeat", "Repeatedly, after a pause"],
  ["on_idle", "When the agent is idle"],
  ["on_event", "When something happens"],
  ["webhook", "When another program calls it (webhook)"],
];
const CRON_PRESETS: [string, string][] = [
  ["0 9 * * *", "Every day at 09:00"],
  ["0 9 * * 1-5", "On weekdays at 09:00"],
  ["0 9 * * MON", "Every Monday at 09:00"],
  ["0 * * * *", "Every hour"],
  ["", "Something else (cron)"],
];
const EVENT_OPTIONS: [string, string][] = [
  ["node.completed", "A task is done"],
  ["node.partial", "A limit ends a task early"],
  ["node.failed", "A task fails"],
  ["stage.ended", "A stage ends"],
  ["question.asked", "An agent asks a question"],
  ["memory.written", "An agent writes a note"],
  ["message.sent", "A message is sent"],
];
const UNIT_OPTIONS: [string, string][] = [["1", "seconds"], ["60", "minutes"], ["3600", "hours"], ["86400", "days"]];
/** The name of the text in what each action is given. The others have no text. */
const TEXT_OF: Partial<Record<Trigger["action"], string>> = { wake_agent: "task", send_message: "content", research: "question" };
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** What the fields of a trigger's time show at first. */
function startOf({ type, config, zone, due_at }: Trigger) {
  const seconds = Number(config.delay_seconds ?? config.interval_seconds ?? config.idle_seconds ?? 1800);
  const unit = UNIT_OPTIONS.findLast(([size]) => seconds % Number(size) === 0)?.[0] ?? "1";
  const cron = String(config.cron ?? "");
  return {
    preset: CRON_PRESETS.some(([line]) => line === cron) ? cron : "",
    cron,
    zone,
    amount: String(seconds / Number(unit)),
    unit,
    at: type === "at_time" && due_at ? wallClock(due_at, zone) : "",
    event: String(config.event_pattern ?? ""),
    always: config.when === "always",
  };
}

/** Return a moment as a field for a date and a time takes it, in a time zone. */
const wallClock = (at: string, timeZone: string): string => new Date(at).toLocaleString("sv-SE", { timeZone }).slice(0, 16).replace(" ", "T");

/** With a `trigger`, the dialog changes it: only what the person changed is sent. */
export function NewTrigger({ team, agents, trigger, onClose }: { team: Team; agents: Agent[]; trigger?: Trigger; onClose: () => void }) {
  const [start] = useState(() => (trigger ? startOf(trigger) : { preset: CRON_PRESETS[0]![0], cron: "0 9 * * *", zone: browserZone, amount: "30", unit: "60", at: "", event: EVENT_OPTIONS[0]![0], always: false }));
  const [type, setType] = useState<Type>(trigger?.type ?? "scheduled");
  const [agent, setAgent] = useState("");
  const textName = trigger ? TEXT_OF[trigger.action] : "task";
  const [oldTask] = useState(() => (trigger && textName ? String(trigger.payload[textName] ?? "") : ""));
  const [task, setTask] = useStoredDraft(`trigger.${trigger?.id ?? team.id}`, oldTask);
  const [isResearch, setIsResearch] = useState(trigger?.action === "research");
  const [preset, setPreset] = useState(start.preset);
  const [cron, setCron] = useState(start.cron);
  const [zone, setZone] = useState(start.zone);
  const [amount, setAmount] = useState(start.amount);
  const [unit, setUnit] = useState(start.unit);
  const [at, setAt] = useState(start.at);
  const [event, setEvent] = useState(start.event);
  const [always, setAlways] = useState(start.always);
  const [idempotencyKey] = useState(randomId);

  const config = ((): Config => {
    const seconds = Number(amount) * Number(unit);
    switch (type) {
      case "scheduled":
        return { cron: preset || cron, zone };
      case "delayed":
        return { delay_seconds: seconds };
      case "at_time":
        return { at, zone };
      case "heartbeat":
        return { interval_seconds: seconds, when: always ? "always" : "news" };
      case "on_idle":
        return { idle_seconds: seconds };
      case "on_event":
        return { event_pattern: event };
      case "webhook":
        return {};
    }
  })();
  const [first] = useState(() => JSON.stringify(config));
  const create = useMutation({
    mutationFn: async (): Promise<Schemas["CreatedTriggerView"]> => {
      if (trigger) return change(trigger);
      return await unwrap(
        api.POST("/api/teams/{team}/triggers", {
          params: { path: { team: team.id }, header: { "idempotency-key": `${idempotencyKey}-${JSON.stringify([type, config, task, agent, isResearch]).length}-${hash(JSON.stringify([type, config, task, agent, isResearch]))}` } },
          body: { type, agent: agent || null, config, action: isResearch ? "research" : "wake_agent", payload: isResearch ? { question: task.trim() } : task.trim() ? { task: task.trim() } : {} },
        }),
      );
    },
    onSuccess: (created) => {
      setTask(oldTask);
      void queryClient.invalidateQueries({ queryKey: queryKeys.triggers(team.id) });
      if (created.secret) return;
      showToast(trigger ? "The trigger is changed." : "The trigger was created.");
      onClose();
    },
  });
  /** The rest of a trigger's time and of what it does stays: such as how often it fires at most. */
  const change = (old: Trigger): Promise<Schemas["CreatedTriggerView"]> | Trigger => {
    const body = {
      ...(JSON.stringify(config) === first ? {} : { config: { ...old.config, ...config } }),
      ...(textName === undefined || task.trim() === oldTask.trim() ? {} : { payload: { ...old.payload, [textName]: task.trim() } }),
    };
    return Object.keys(body).length === 0 ? old : unwrap(api.PATCH("/api/teams/{team}/triggers/{trigger}", { params: { path: { team: team.id, trigger: old.id } }, body }));
  };
  const created = create.data;
  const needsTime = type === "delayed" || type === "heartbeat" || type === "on_idle";
  const isReady = ((!isResearch && trigger?.action !== "send_message") || task.trim() !== "") && (type !== "at_time" || at !== "") && (!needsTime || Number(amount) > 0) && (type !== "scheduled" || (preset || cron).trim() !== "");

  if (created?.secret) return <WebhookSecret trigger={created} onClose={onClose} />;
  const submit = (form: FormEvent) => {
    form.preventDefault();
    if (isReady) create.mutate();
  };
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title={trigger ? "Edit the trigger" : "New trigger"} description={trigger ? "A new time applies from now on." : "Starts an agent at a time or after an event."}>
      <form onSubmit={submit} className="space-y-4">
        {!trigger && (
          <Field label="When">
            {(id) => <Select id={id} value={type} onChange={(now) => setType(now as Type)} options={TYPE_OPTIONS} />}
          </Field>
        )}
        {type === "scheduled" && (
          <>
            <Field label="How often">{(id) => <Select id={id} value={preset} onChange={setPreset} options={CRON_PRESETS} />}</Field>
            {preset === "" && (
              <Field label="Cron expression" hint="Minute, hour, day, month, weekday; 0 9 * * MON is every Monday at nine.">
                {(id, hint) => <Input id={id} aria-describedby={hint} value={cron} onChange={(change) => setCron(change.target.value)} className="font-mono" spellCheck={false} />}
              </Field>
            )}
          </>
        )}
        {needsTime && (
          <Field label={type === "delayed" ? "After" : type === "heartbeat" ? "After a pause of" : "After being idle for"}>
            {(id) => (
              <div className="flex gap-2">
                <Input id={id} type="number" min="1" step="1" value={amount} onChange={(change) => setAmount(change.target.value)} className="w-28" />
                <Select value={unit} onChange={setUnit} options={UNIT_OPTIONS} label="Unit" />
              </div>
            )}
          </Field>
        )}
        {type === "heartbeat" && (
          <label className="flex min-h-6 items-center gap-2 text-sm">
            <input type="checkbox" checked={always} onChange={(change) => setAlways(change.target.checked)} className="size-4" />
            Also when there is nothing new
          </label>
        )}
        {type === "at_time" && <Field label="At">{(id) => <Input id={id} type="datetime-local" required value={at} onChange={(change) => setAt(change.target.value)} />}</Field>}
        {type === "on_event" && <Field label="What">{(id) => <Select id={id} value={event} onChange={setEvent} options={trigger && !EVENT_OPTIONS.some(([pattern]) => pattern === start.event) ? [[start.event, start.event], ...EVENT_OPTIONS] : EVENT_OPTIONS} />}</Field>}
        {(type === "scheduled" || type === "at_time") && (
          <Field label="Time zone">{(id) => <Input id={id} value={zone} onChange={(change) => setZone(change.target.value)} spellCheck={false} />}</Field>
        )}
        {!trigger && (
          <>
            <Field label="Who">
              {(id) => <Select id={id} value={agent} onChange={setAgent} options={agents.map((one) => [one.role === "coordinator" ? "" : one.name, capitalize(one.name)])} />}
            </Field>
            <Field label="Kind of work">
              {(id) => (
                <Select
                  id={id}
                  value={isResearch ? "research" : "task"}
                  onChange={(now) => setIsResearch(now === "research")}
                  options={[
                    ["task", "A task"],
                    ["research", "Research: report what is new"],
                  ]}
                />
              )}
            </Field>
          </>
        )}
        {textName && <Field label={isResearch ? "Question" : trigger?.action === "send_message" ? "Message" : "What to do"} hint={isResearch ? "It is asked each time. Without anything new there is no report." : trigger?.action === "send_message" ? undefined : "In your own words. If empty, the agent decides what to do."}>
          {(id, hint) => <Textarea id={id} aria-describedby={hint} rows={3} value={task} onChange={(change) => setTask(change.target.value)} placeholder={isResearch ? "What is new about the tower?" : "Write the weekly summary and report it to me"} />}
        </Field>}
        <p className="rounded-sm bg-sunken px-3 py-2 text-sm text-ink-2">{describeTiming({ type, config, zone: type === "scheduled" || type === "at_time" ? zone : undefined })}</p>
        {create.isError && (
          <p role="alert" className="rounded-sm bg-fail-bg px-3 py-2 text-sm text-fail">
            {errorMessage(create.error)}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!isReady || create.isPending}>
            {trigger ? (create.isPending ? "Saving…" : "Save") : create.isPending ? "Creating the trigger…" : "Create trigger"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function WebhookSecret({ trigger, onClose }: { trigger: Schemas["CreatedTriggerView"]; onClose: () => void }) {
  const address = `${location.origin}/api/hooks/${trigger.id}`;
  const command = `curl -X POST ${address} -H "X-Agiraph-Secret: ${trigger.secret}" -d "What happened"`;
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="The webhook is ready" description="Copy the secret now: it cannot be shown again.">
      <div className="space-y-3 text-sm">
        {[
          ["Address", address],
          ["Secret", trigger.secret ?? ""],
          ["Try it", command],
        ].map(([name, value]) => (
          <div key={name}>
            <p className="text-xs text-ink-3">{name}</p>
            <div className="flex items-start gap-2">
              <code className="scroll min-w-0 flex-1 rounded-sm bg-sunken px-2 py-1.5 text-xs break-all">{value}</code>
              <Button size="sm" aria-label={`Copy the ${name?.toLowerCase()}`} onClick={() => void copyText(value ?? "").then(() => showToast("Copied."))}>
                <Copy className="size-3.5" />
              </Button>
            </div>
          </div>
        ))}
        <div className="flex justify-end pt-1">
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
