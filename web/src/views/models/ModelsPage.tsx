/** ModelsPage: all providers and their models: what each can do, where that is known from, and a test of one. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { Check, CircleAlert, CircleHelp, RefreshCw } from "lucide-react";
import { Suspense, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { lazyChunk } from "@/live/chunks";
import { Facts } from "@/views/models/Facts";
import { modelsQuery } from "@/views/models/modelsQuery";
import { failedChecks, type Model, type ModelTest, noticeOf, type Models, type Provider, withTest } from "@/views/models/notice";
import { Advice, NoticeText } from "@/views/models/NoticeText";
import { UseForTeam } from "@/views/models/UseForTeam";
import { SidebarButton } from "@/parts/SidebarButton";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { showToast } from "@/parts/toast";
import { Button, Chip, Dialog, DialogActions, ErrorPanel, Header, IconButton, Loading, type Tone } from "@/ui";

const SetUpModel = lazyChunk(() => import("@/views/models/SetUpModel"));
const STATES: Record<Provider["state"], { label: string; tone: Tone }> = {
  ready: { label: "Ready", tone: "done" },
  down: { label: "Does not answer", tone: "fail" },
  no_key: { label: "No key", tone: "plain" },
  not_running: { label: "Not running", tone: "plain" },
};
const CHECKS: Record<Schemas["ModelCheck"]["name"], string> = { words: "Words", tool_call: "Tool call", schema: "Schema answer", cache: "Cache hit" };

export function ModelsPage() {
  const models = useQuery(modelsQuery);
  return (
    <>
      <Header lead={<SidebarButton />} title="Models" subtitle="Enter a key here, or set it by an environment variable of the server">
        <IconButton label="Look again" onClick={() => void models.refetch()} disabled={models.isFetching}>
          <RefreshCw className={cx("size-4", models.isFetching && "animate-spin")} />
        </IconButton>
      </Header>
      <div className="scroll min-h-0 flex-1 px-6 max-md:px-4" tabIndex={0} role="region" aria-label="Models">
        <div className="mx-auto max-w-[920px] space-y-6 py-6">
          {models.isPending ? (
            <Loading label="Asking the servers what they have" />
          ) : models.isError && !models.data ? (
            <ErrorPanel title="The models could not be listed" detail={errorMessage(models.error)} onRetry={() => void models.refetch()} />
          ) : (
            models.data && <Listed models={models.data} />
          )}
        </div>
      </div>
    </>
  );
}

function Listed({ models }: { models: Models }) {
  const notice = noticeOf(models, "");
  const inUse = models.providers.filter((one) => one.state === "ready" || one.state === "down");
  const others = models.providers.filter((one) => one.state !== "ready" && one.state !== "down");
  const { setup: isAsked = false, team } = useSearch({ from: "/models" });
  // The result of the setup stays on the page after the new model has become the default.
  const [wantsSetup, setWantsSetup] = useState(models.default === "demo");
  const [chosen, setChosen] = useState("");
  const isSettingUp = isAsked || wantsSetup;
  return (
    <>
      <section aria-label="Default model" className="rounded-md border border-line bg-surface p-4">
        <div className="flex flex-wrap items-center gap-3">
          <h2 className="flex-1 text-sm font-semibold">Default model</h2>
          {!isSettingUp && <Button size="sm" onClick={() => setWantsSetup(true)}>Set up a model</Button>}
        </div>
        <p dir="ltr" className="mt-1 text-md break-words">{models.default}</p>
        {notice && <NoticeText notice={notice} className="mt-1" />}
        {team && models.default !== "demo" && <UseForTeam team={team} model={models.default} className="mt-3" />}
      </section>
      {isSettingUp && (
        <section aria-label="Set up a model">
          <h2 className="mb-2 text-md font-semibold">Set up a model</h2>
          <Suspense fallback={<Loading label="Opening the form" className="p-0 py-2" />}>
            <SetUpModel key={chosen} provider={chosen} takesFocus={isAsked || chosen !== "" || models.default !== "demo"} team={team} />
          </Suspense>
        </section>
      )}
      {inUse.map((provider) => (
        <ProviderSection key={provider.name} provider={provider} models={models} />
      ))}
      {others.length > 0 && (
        <section aria-label="Not set up">
          <h2 className="mb-2 text-md font-semibold">Not set up</h2>
          <ul className="divide-y divide-line rounded-md border border-line">
            {others.map((provider) => (
              <li key={provider.name} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
                <span dir="auto" className="w-28 shrink-0 font-medium">{provider.name}</span>
                <span className="min-w-0 flex-1 basis-60 break-words text-ink-2">
                  <Advice text={provider.advice} />
                </span>
                {provider.takes_key && (
                  <Button
                    size="sm"
                    aria-label={`Enter a key for ${provider.name}`}
                    onClick={() => {
                      setChosen(provider.name);
                      setWantsSetup(true);
                    }}
                  >
                    Enter a key
                  </Button>
                )}
                <Chip tone={STATES[provider.state].tone}>{STATES[provider.state].label}</Chip>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function ProviderSection({ provider, models }: { provider: Provider; models: Models }) {
  const { label, tone } = STATES[provider.state];
  return (
    <section aria-label={provider.name}>
      <div className="mb-2 flex flex-wrap items-baseline gap-x-3">
        <h2 dir="auto" className="text-md font-semibold">{provider.name}</h2>
        <Chip tone={tone}>{label}</Chip>
        <span className="min-w-0 flex-1 truncate text-xs text-ink-3">{provider.address}</span>
        {provider.has_stored_key && <RemoveKey provider={provider.name} />}
      </div>
      {provider.advice && (
        <p className="mb-2 text-sm text-ink-2">
          <Advice text={provider.advice} />
        </p>
      )}
      {provider.models.length > 0 && (
        <ul className="divide-y divide-line rounded-md border border-line">
          {provider.models.map((model) => (
            <ModelRow key={model.name} model={model} models={models} canTest={provider.state === "ready"} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** Removes a key that a person entered here, after a confirmation. */
function RemoveKey({ provider }: { provider: string }) {
  const [isAsking, setIsAsking] = useState(false);
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/operations/keys/{provider}", { params: { path: { provider } } })),
    onSuccess: async () => {
      setIsAsking(false);
      showToast(`The key for ${provider} was removed.`);
      await queryClient.invalidateQueries(modelsQuery);
    },
  });
  const ask = () => {
    remove.reset();
    setIsAsking(true);
  };
  return (
    <>
      <Button size="sm" variant="danger" aria-label={`Remove the key for ${provider}`} onClick={ask}>
        Remove the key
      </Button>
      {isAsking && (
        <Dialog open onOpenChange={setIsAsking} title={`Remove the key for ${provider}?`} description="If the server's environment has no key either, agents that use its models wait until there is one. The provider does not hear of it: revoke the key there if somebody else may know it.">
          {remove.isError && (
            <p role="alert" className="text-sm text-fail">
              {errorMessage(remove.error)}
            </p>
          )}
          <DialogActions>
            <Button onClick={() => setIsAsking(false)}>Keep it</Button>
            <Button variant="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
              Remove it
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </>
  );
}

function ModelRow({ model, models, canTest }: { model: Model; models: Models; canTest: boolean }) {
  const test = useMutation({
    mutationFn: () => unwrap(api.POST("/api/models/test", { body: { model: model.name } })),
    onSuccess: async (result) => {
      // A list that was asked for before the test ended still has the test before it.
      await queryClient.cancelQueries(modelsQuery);
      queryClient.setQueryData(modelsQuery.queryKey, (known) => known && withTest(known, result));
      // The test may also have changed whether the default model can be used.
      void queryClient.invalidateQueries(modelsQuery);
    },
  });
  const notice = noticeOf(models, model.name);
  // The test below says it already.
  const hasFailed = model.last_test !== null && failedChecks(model.last_test).some((check) => check.name === "words");
  return (
    <li className="px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span dir="auto" className="min-w-0 font-medium break-all">{model.name}</span>
        {model.is_default && <Chip>Default</Chip>}
        <span className="flex-1" />
        {canTest && (
          <Button size="sm" disabled={test.isPending} title="Makes a few short calls, which cost a little" onClick={() => test.mutate()} aria-label={`Test ${model.name}`}>
            {test.isPending ? "Testing…" : "Test"}
          </Button>
        )}
      </div>
      <Facts model={model} />
      {notice && !hasFailed && <NoticeText notice={notice} className="mt-1" />}
      {test.isError && (
        <p role="alert" className="mt-1 text-xs text-fail">
          {errorMessage(test.error)}
        </p>
      )}
      {model.last_test && !test.isPending && <LastTest test={model.last_test} />}
    </li>
  );
}

const VERDICTS = {
  passed: { icon: Check, colour: "text-done", label: "works" },
  failed: { icon: CircleAlert, colour: "text-fail", label: "does not work" },
  unknown: { icon: CircleHelp, colour: "text-ink-3", label: "not known" },
};

/** What the model did when it was last tested, how long ago that was, and what to do about what failed. */
function LastTest({ test }: { test: ModelTest }) {
  const now = useNow(30_000);
  return (
    <div role="group" aria-label={`Test of ${test.model}`} className="mt-2 rounded-sm bg-sunken px-2.5 py-2 text-xs">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="text-ink-2">
          Tested <RelativeTime at={test.at} now={now} />
        </span>
        {test.checks.map(({ name, verdict, what }) => {
          const { icon: Icon, colour, label } = VERDICTS[verdict];
          return (
            <span key={name} title={what} className="flex items-center gap-1">
              <Icon className={cx("size-3.5 shrink-0", colour)} aria-hidden /> {CHECKS[name]}
              <span className="sr-only">: {label}</span>
            </span>
          );
        })}
      </div>
      {failedChecks(test).map(({ name, what, advice }) => (
        <p key={name} className="mt-1.5 break-words">
          <span className="text-ink-2">
            {CHECKS[name]}: <Advice text={what} />
          </span>
          {advice && (
            <span className="mt-0.5 block font-medium">
              <Advice text={advice} />
            </span>
          )}
        </p>
      ))}
    </div>
  );
}
