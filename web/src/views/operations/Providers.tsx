/** Providers: of each provider of models the last calls, pauses and today's cost. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "@/api/client";
import { money, plural } from "@/lib/format";
import { Advice } from "@/views/models/NoticeText";
import { Empty, Loaded, Section } from "@/views/operations/parts";
import { providersQuery } from "@/views/operations/queries";
import { Chip, type Tone } from "@/ui";
import { RelativeTime, useNow } from "@/parts/RelativeTime";

type Provider = Schemas["ProviderStatusView"];
const STATES: Record<Provider["state"], [Tone, string]> = {
  working: ["done", "Working"],
  failing: ["fail", "Failing"],
  paused: ["wait", "Paused after failures"],
  not_reached: ["fail", "Does not answer"],
  not_called: ["plain", "Not called yet"],
};

export default function Providers() {
  const query = useQuery(providersQuery);
  return (
    <Section
      title="Providers"
      description="Calls that this server process has made since it started, and the cost of all teams today (UTC)."
      action={
        <Link to="/models" className="inline-flex h-8 items-center rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-11">
          Models
        </Link>
      }
    >
      <Loaded query={query} what="the providers">
        {(found) =>
          found.length === 0 ? (
            <Empty>
              No provider is set up.{" "}
              <Link to="/models" search={{ setup: true }} className="font-medium underline">
                Set up a model
              </Link>
            </Empty>
          ) : (
            <ul className="divide-y divide-line">
              {found.map((provider) => (
                <ProviderItem key={provider.name} provider={provider} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function ProviderItem({ provider }: { provider: Provider }) {
  const now = useNow(10_000);
  const [tone, label] = STATES[provider.state];
  return (
    <li className="px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h3 dir="auto" className="font-medium">{provider.name}</h3>
        <Chip tone={tone}>{label}</Chip>
        <span dir="ltr" className="min-w-0 truncate text-xs text-ink-3">
          {provider.address}
        </span>
      </div>
      <dl className="mt-1.5 flex flex-wrap gap-x-6 gap-y-1 text-xs">
        <Fact name="Last success">{provider.succeeded_at ? <RelativeTime at={provider.succeeded_at} now={now} /> : "none yet"}</Fact>
        <Fact name="Last error">{provider.failed_at ? <RelativeTime at={provider.failed_at} now={now} /> : "none"}</Fact>
        {provider.paused_s > 0 && <Fact name="Called again in">{Math.ceil(provider.paused_s)} s</Fact>}
        <Fact name="Rate limit">{provider.rate_limit_s > 0 ? `calls wait ${Math.ceil(provider.rate_limit_s)} s` : "not reached"}</Fact>
        <Fact name="Today">
          {plural(provider.calls_today, "call")}, {money(provider.usd_today)}
        </Fact>
      </dl>
      {provider.error && provider.state !== "working" && (
        <p dir="auto" className="mt-1.5 text-xs break-words text-fail">
          {provider.error}
        </p>
      )}
      {provider.advice && (
        <p dir="auto" className="mt-1 text-xs break-words text-ink-2">
          <Advice text={provider.advice} />
        </p>
      )}
    </li>
  );
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="flex gap-1.5">
    <dt className="text-ink-3">{name}</dt>
    <dd className="tabular">{children}</dd>
  </div>
);
