/** Facts: what is known of a model: what it reads, can do and costs, and where that is known from. */
import type { Schemas } from "@/api/client";
import { compactNumber } from "@/lib/format";
import type { Model } from "@/views/models/notice";

const ORIGINS: Record<Schemas["NumberFact"]["origin"], string> = { file: "from agiraph.toml", server: "from the server", package: "known to agiraph", assumed: "assumed" };

export function Facts({ model }: { model: Model }) {
  const facts: { name: string; value: string; origin: string }[] = [];
  const add = (name: string, value: string, origin: Schemas["NumberFact"]["origin"]) => facts.push({ name, value, origin: ORIGINS[origin] });
  if (model.input_usd && model.output_usd) add("Price", model.input_usd.value + model.output_usd.value === 0 ? "free" : `$${model.input_usd.value} in, $${model.output_usd.value} out for a million tokens`, model.input_usd.origin);
  add("Context", `${compactNumber(model.window.value)} tokens`, model.window.origin);
  if (model.output_limit) add("Max output", `${compactNumber(model.output_limit.value)} tokens`, model.output_limit.origin);
  for (const [name, fact] of [["Tools", model.tools], ["Images", model.images], ["PDF", model.pdf], ["Thinking", model.thinking], ["Web search", model.search]] as const) if (fact) add(name, fact.value ? "yes" : "no", fact.origin);
  return (
    <dl className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-xs">
      {facts.map(({ name, value, origin }) => (
        <div key={name} className="flex gap-1" title={`${name}: ${origin}`}>
          <dt className="text-ink-3">{name}</dt>
          <dd className="text-ink-2">
            {value}
            {origin === "assumed" && <span className="text-ink-3"> (assumed)</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
