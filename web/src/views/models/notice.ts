/** Notice: what a person should know of a model before a team uses it, and what to do about it. */
import type { Schemas } from "@/api/client";

export type Models = Schemas["ModelsView"];
export type Model = Schemas["ModelView"];
export type Provider = Schemas["ProviderView"];
export type ModelTest = Schemas["ModelTestView"];
export interface Notice {
  tone: "plain" | "wait" | "fail";
  text: string;
}

/** Return the models that a name stands for: it may list several, and `text/` in front only says how calls are written. */
const split = (name: string): { full: string; isText: boolean }[] =>
  name
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean)
    .map((one) => ({ full: one.replace(/^text\//, ""), isText: one.startsWith("text/") }));

/** Return what to say about a chosen model; null if it is ready and nothing is special. An empty name is the default model. */
export function noticeOf(models: Models | undefined, chosen: string): Notice | null {
  if (!models) return null;
  if (!chosen.trim() && models.default_problem) return { tone: "fail", text: models.default_problem };
  if (!chosen.trim() && models.default === "demo") return { tone: "wait", text: "No model is set up: a scripted demo answers, not an AI, and does the same few things for every goal." };
  for (const one of split(chosen.trim() || models.default)) {
    const notice = noticeOfOne(models, one.full, one.isText);
    if (notice) return notice;
  }
  return null;
}

function noticeOfOne(models: Models, name: string, isText: boolean): Notice | null {
  if (name === "demo") return { tone: "plain", text: "A scripted demo answers, not an AI. It costs nothing." };
  const slash = name.indexOf("/");
  const provider = slash > 0 ? models.providers.find((one) => one.name === name.slice(0, slash)) : undefined;
  // The server refuses a name that it cannot place, and lists what there is.
  if (!provider) return { tone: "fail", text: `No provider offers “${name}”. Write provider/model, such as ${firstName(models) ?? "openai/gpt-5"}.` };
  if (provider.state !== "ready") return { tone: "fail", text: provider.advice || `${provider.name} does not answer.` };
  const model = provider.models.find((one) => one.name === name);
  if (!model) return missing(provider, name);
  const [failed] = model.last_test ? failedChecks(model.last_test).filter((check) => check.name === "words") : [];
  if (failed) return { tone: "fail", text: `The last test failed: ${failed.what} ${failed.advice}`.trim() };
  if (model.retires) return { tone: "wait", text: `${name} is shut down on ${model.retires}.${model.use_instead ? ` Use ${model.use_instead} instead.` : ""}` };
  if (model.tools?.value === false && !isText) return { tone: "fail", text: `This model cannot call tools through its server. Use it as text/${name}, where calls are written as text, or choose a model with tools.` };
  if (model.advice) return { tone: "wait", text: model.advice };
  if (model.window.origin === "assumed") return { tone: "plain", text: `The context window of ${name} is not known; ${tokens(model.window.value)} are assumed. Set \`window\` in agiraph.toml if it is less.` };
  return null;
}

const firstName = (models: Models): string | undefined => models.providers.find((one) => one.state === "ready" && one.models.length > 0)?.models[0]?.name;

/** A server of one's own lists all its models; of a vendor agiraph knows only some. */
function missing(provider: Provider, name: string): Notice {
  if (!provider.is_local) return { tone: "plain", text: `agiraph knows nothing about ${name}. If ${provider.name} has it, it is used; its price is not counted.` };
  const known = provider.models.map((one) => one.name);
  const there = known.length > 0 ? ` It has: ${known.slice(0, 12).join(", ")}.` : "";
  return { tone: "fail", text: `${provider.name === "ollama" ? `Check the model's name, or load it with \`ollama pull ${name.slice("ollama/".length)}\`.` : "Check the model's name."}${there}` };
}

/** Return the checks of a test that failed, with what happened and what to do. */
export const failedChecks = ({ checks }: ModelTest): Schemas["ModelCheck"][] => checks.filter((check) => check.verdict === "failed");

/** Return the models with a new test of one of them. */
export const withTest = (models: Models, test: ModelTest): Models => ({
  ...models,
  providers: models.providers.map((provider) => ({ ...provider, models: provider.models.map((model) => (model.name === test.model ? { ...model, last_test: test } : model)) })),
});

export const tokens = (count: number): string => `${count.toLocaleString("en")} tokens`;

/** All names that can be used now, for the list of a text field. */
export const usableNames = (models: Models | undefined): string[] => (models?.providers ?? []).filter((one) => one.state === "ready").flatMap((one) => one.models.map((model) => model.name));
