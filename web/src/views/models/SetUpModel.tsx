/** SetUpModel: sets up a model: by an API key, or one on this machine, each tested before it is used; or the demo. On the welcome page and on Models. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Check, CircleAlert, KeyRound, Server, Sparkles } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { compactNumber } from "@/lib/format";
import { modelsQuery } from "@/views/models/modelsQuery";
import { Advice } from "@/views/models/NoticeText";
import { UseForTeam } from "@/views/models/UseForTeam";
import { useShell } from "@/parts/shellState";
import { Button, Input, Loading, Problem } from "@/ui";

type Setup = Schemas["SetupView"];

interface Props {
  /** On the welcome page the page itself offers a new team. */
  isWelcome?: boolean;
  /** The provider that is chosen at first. */
  provider?: string;
  /** Whether the text field for the key takes the focus. */
  takesFocus?: boolean;
  /** A team of the demo that may use the new model. */
  team?: string;
}

export default function SetUpModel({ isWelcome = false, provider = "", takesFocus = false, team }: Props) {
  const models = useQuery(modelsQuery);
  const [made, setMade] = useState<Setup | null>(null);
  const update = useShell((state) => state.update);
  const openNewTeam = () => update({ newTeam: true });
  const done = (setup: Setup) => {
    if (!setup.is_stored) return;
    setMade(setup);
    void queryClient.invalidateQueries({ queryKey: modelsQuery.queryKey });
  };
  if (made) return <Ready setup={made} team={team} onStart={isWelcome ? undefined : openNewTeam} onAnother={() => setMade(null)} onDefault={setMade} />;
  return (
    <div className={cx("space-y-3 text-left", isWelcome && "mx-auto max-w-[560px]")}>
      {isWelcome && <p className="text-center text-sm font-medium text-ink">No model is set up yet. Choose one of three ways:</p>}
      <KeyForm providers={(models.data?.providers ?? []).filter((one) => one.takes_key).map((one) => one.name)} initial={provider} takesFocus={takesFocus} onDone={done} />
      <LocalModels models={models.data} isLoading={models.isFetching} onLook={() => void models.refetch()} onDone={done} />
      <Card icon={<Sparkles />} title="Demo">
        <p className="text-sm text-ink-2">A scripted team shows how agiraph works: it hires a teammate, asks you a question and delivers a file. It takes a minute, needs no key and costs nothing.</p>
        <Button className="mt-3" onClick={() => update({ newTeam: true, startsDemo: true })}>
          Try the demo
        </Button>
      </Card>
    </div>
  );
}

function Card({ icon, title, children }: { icon: ReactNode; title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="rounded-md border border-line bg-surface p-4">
      <h2 dir="auto" className="mb-1 flex items-center gap-2 text-sm font-semibold [&_svg]:size-4 [&_svg]:text-ink-3">
        {icon} {title}
      </h2>
      {children}
    </section>
  );
}

export function KeyForm({ providers, initial, takesFocus, onDone }: { providers: string[]; initial: string; takesFocus: boolean; onDone: (setup: Setup) => void }) {
  const [key, setKey] = useState("");
  const [provider, setProvider] = useState(initial);
  const save = useMutation({ mutationFn: () => unwrap(api.POST("/api/operations/keys", { body: { key: key.trim(), provider, model: "" } })), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim()) save.mutate();
  };
  return (
    <Card icon={<KeyRound />} title="API key">
      <p className="text-sm text-ink-2">The server makes two small calls to test it, then stores it in a file that only you can read. It is never shown again.</p>
      <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2 text-xs font-medium">
        <label className="flex min-w-[200px] flex-1 flex-col gap-1">
          Key
          <Input type="password" autoFocus={takesFocus} autoComplete="off" spellCheck={false} dir="ltr" value={key} onChange={(event) => setKey(event.target.value)} placeholder="sk-…" className="font-normal" maxLength={500} />
        </label>
        <label className="flex flex-col gap-1">
          Provider
          <select value={provider} onChange={(event) => setProvider(event.target.value)} className="h-9 rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-11">
            <option value="">Guess from the key</option>
            {providers.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Button type="submit" variant="primary" className="h-9 pointer-coarse:h-11" disabled={!key.trim() || save.isPending}>
          {save.isPending ? "Testing…" : "Test and save"}
        </Button>
      </form>
      <Problem of={save.error} className="mt-2 text-sm" />
      <Failure setup={save.data} />
    </Card>
  );
}

/** Why a model was not stored, in the card where the person tried it. */
function Failure({ setup }: { setup: Setup | undefined }) {
  const check = setup?.is_stored === false && setup.test.checks[0];
  if (!check) return null;
  return (
    <p role="alert" dir="auto" className="mt-2 w-full text-sm break-words text-fail">
      {setup.model} did not answer, so nothing was stored. <Advice text={`${check.what} ${check.advice}`} />
    </p>
  );
}

function LocalModels({ models, isLoading, onLook, onDone }: { models: Schemas["ModelsView"] | undefined; isLoading: boolean; onLook: () => void; onDone: (setup: Setup) => void }) {
  const use = useMutation({ mutationFn: (model: string) => unwrap(api.POST("/api/operations/default-model", { body: { model } })), onSuccess: onDone });
  const found = (models?.providers ?? []).filter((one) => one.is_local && one.state === "ready").flatMap((one) => one.models.map((model) => ({ ...model, provider: one })));
  const name = (model: (typeof found)[number]) => (model.tools?.value === false ? `text/${model.name}` : model.name);
  return (
    <Card icon={<Server />} title="On this machine">
      {!models ? (
        <Loading label="Looking for Ollama, LM Studio, llama.cpp and vLLM" className="p-0 py-1" />
      ) : found.length === 0 ? (
        <p className="text-sm text-ink-2">No server was found at the usual ports of Ollama, LM Studio, llama.cpp and vLLM. Start one, and look again.</p>
      ) : (
        <ul className="divide-y divide-line">
          {found.map((model) => (
            <li key={model.name} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm">
              <span dir="ltr" className="min-w-0 flex-1 basis-40 break-words">
                {model.name}
                <span className="block text-xs text-ink-3">
                  {model.provider.address} · {compactNumber(model.window.value)} tokens of context
                </span>
              </span>
              <Button size="sm" aria-label={`Use ${model.name}`} disabled={use.isPending} onClick={() => use.mutate(name(model))}>
                {use.isPending && use.variables === name(model) ? "Testing…" : "Use"}
              </Button>
              {use.variables === name(model) && <Failure setup={use.data} />}
            </li>
          ))}
        </ul>
      )}
      <Button size="sm" className="mt-2" disabled={isLoading} onClick={onLook}>
        {isLoading ? "Looking…" : "Look again"}
      </Button>
      <Problem of={use.error} className="mt-2 text-sm" />
    </Card>
  );
}

const CHECKS: Partial<Record<Schemas["ModelCheck"]["name"], string>> = { words: "It answers", tool_call: "It calls tools" };

/** What the model can do, as far as the test and the known facts tell. */
function Ready({ setup, team, onStart, onAnother, onDefault }: { setup: Setup; team: string | undefined; onStart: (() => void) | undefined; onAnother: () => void; onDefault: (setup: Setup) => void }) {
  const { facts } = setup;
  const makeDefault = useMutation({
    mutationFn: () => unwrap(api.POST("/api/operations/default-model", { body: { model: setup.model } })),
    onSuccess: (made) => {
      if (made.is_stored) onDefault(made);
      void queryClient.invalidateQueries({ queryKey: modelsQuery.queryKey });
    },
  });
  const known = facts ? ([["Context", `${compactNumber(facts.window.value)} tokens${facts.window.origin === "assumed" ? " (assumed)" : ""}`], facts.output_limit && ["Max output", `${compactNumber(facts.output_limit.value)} tokens`], facts.images && ["Images", facts.images.value ? "yes" : "no"], facts.thinking && ["Thinking", facts.thinking.value ? "yes" : "no"], facts.input_usd && facts.output_usd && ["Price", facts.input_usd.value + facts.output_usd.value === 0 ? "free" : `$${facts.input_usd.value} in, $${facts.output_usd.value} out for a million tokens`]] as const).filter((one) => !!one) : [];
  return (
    <section aria-label="The model is ready" role="status" className={cx("rounded-md border border-line bg-surface p-4 text-left", !onStart && "mx-auto max-w-[560px]")}>
      <h2 className="text-md font-semibold break-words">{setup.model} is ready</h2>
      {setup.is_default && <p className="text-sm text-ink-2">New teams use it unless they name another model.</p>}
      <ul className="mt-3 space-y-1.5 text-sm">
        {setup.test.checks.map((check) => (
          <li key={check.name} className="flex gap-2">
            {check.verdict === "failed" ? <CircleAlert className="mt-0.5 size-4 shrink-0 text-fail" aria-label="Does not work" role="img" /> : <Check className="mt-0.5 size-4 shrink-0 text-done" aria-label="Works" role="img" />}
            <span dir="auto" className="min-w-0 break-words">
              {check.verdict === "failed" ? <Advice text={`${check.what} ${check.advice}`} /> : (CHECKS[check.name] ?? check.what)}
            </span>
          </li>
        ))}
      </ul>
      <dl className="mt-3 flex flex-wrap gap-x-5 gap-y-1 text-xs">
        {known.map(([name, value]) => (
          <div key={name} className="flex gap-1.5">
            <dt className="text-ink-3">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {setup.note && <p className="mt-2 text-xs text-wait">{setup.note}</p>}
      {team && <UseForTeam team={team} model={setup.model} className="mt-3" />}
      <Problem of={makeDefault.error} className="mt-2 text-sm" />
      <div className="mt-4 flex flex-wrap gap-2">
        {onStart && (
          <Button variant="primary" onClick={onStart}>
            Create a team
          </Button>
        )}
        {!setup.is_default && (
          <Button disabled={makeDefault.isPending} onClick={() => makeDefault.mutate()}>
            {makeDefault.isPending ? "Testing…" : "Use it for new teams"}
          </Button>
        )}
        <Button onClick={onAnother}>Set up another model</Button>
      </div>
    </section>
  );
}
