/** WindowUse: what fills the context window of a thread, as one bar with the tokens of each part beside its name. */
import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { compactNumber } from "@/lib/format";

type Use = Schemas["WindowUse"];
type Part = Use["parts"][number]["part"];
/** Shades, as only a state has a colour. The list below the bar says what each part is. */
const PARTS: Record<Part, { label: string; shade: string }> = {
  instructions: { label: "Instructions", shade: "bg-ink" },
  tools: { label: "Tools", shade: "bg-ink/75" },
  memory: { label: "Memory", shade: "bg-ink/55" },
  conversation: { label: "Conversation", shade: "bg-ink/40" },
  results: { label: "Results of tools", shade: "bg-ink/27" },
};
const REFRESH_MS = 30_000;

/** It is fetched again now and then while the thread goes on: to count a long one with each of its turns would be much work for the server. */
const windowQuery = (thread: string, isOpen: boolean) => ({
  queryKey: ["window", thread] as const,
  queryFn: () => unwrap(api.GET("/api/threads/{thread}/window", { params: { path: { thread } } })),
  staleTime: REFRESH_MS,
  refetchInterval: isOpen ? REFRESH_MS : (false as const),
});

/** Return how full the window is, in words. */
export function windowText({ tokens, window }: Pick<Use, "tokens" | "window">): string {
  if (window === null || window === undefined) return `about ${compactNumber(tokens)} tokens`;
  return `about ${compactNumber(tokens)} of ${compactNumber(window)} tokens, ${Math.round((100 * tokens) / window)}%`;
}

function Parts({ use }: { use: Use }) {
  const { tokens, window, shortened_at: end, parts } = use;
  const whole = Math.max(window ?? tokens, tokens);
  return (
    <>
      <div aria-hidden className="relative flex h-2.5 gap-px overflow-hidden rounded-full bg-sunken">
        {parts.map(({ part, tokens: size }) => (
          <span key={part} className={PARTS[part].shade} style={{ width: `${(100 * size) / whole}%` }} />
        ))}
        {end !== null && end !== undefined && <span className="absolute inset-y-0 w-px bg-wait-dot" style={{ left: `${(100 * end) / whole}%` }} />}
      </div>
      <ul className="mt-2 grid grid-cols-[auto_1fr_auto] gap-x-2 gap-y-0.5 text-xs text-ink-2">
        {parts.map(({ part, tokens: size }) => (
          <li key={part} className="col-span-3 grid grid-cols-subgrid items-center">
            <span aria-hidden className={`size-2.5 rounded-[2px] border border-line-2 ${PARTS[part].shade}`} />
            {PARTS[part].label}
            <span className="tabular text-right text-ink-3">{compactNumber(size)}</span>
          </li>
        ))}
        {window !== null && window !== undefined && (
          <li className="col-span-3 grid grid-cols-subgrid items-center">
            <span aria-hidden className="size-2.5 rounded-[2px] border border-line-2 bg-sunken" />
            Free
            <span className="tabular text-right text-ink-3">{compactNumber(Math.max(window - tokens, 0))}</span>
          </li>
        )}
      </ul>
      {end !== null && end !== undefined && <p className="mt-1.5 text-xs text-ink-3">From about {compactNumber(end)} tokens on, the beginning is replaced by a summary.</p>}
    </>
  );
}

/** A section beside a conversation. */
export default function WindowSection({ thread, isOpen }: { thread: string; isOpen: boolean }) {
  const use = useQuery(windowQuery(thread, isOpen)).data;
  if (!use || use.tokens === 0) return null;
  return (
    <section aria-label="Context window">
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-2">
        <h2 className="text-sm font-semibold">Context window</h2>
        <span className="tabular text-xs text-ink-3">{windowText(use)}</span>
      </div>
      <Parts use={use} />
    </section>
  );
}

/** One line above the steps of a thread, which opens. */
export function WindowLine({ thread, isOpen }: { thread: string; isOpen: boolean }) {
  const use = useQuery(windowQuery(thread, isOpen)).data;
  if (!use || use.tokens === 0) return null;
  return (
    <details className="shrink-0 border-b border-line bg-canvas px-4 text-xs max-md:px-3">
      <summary className="tabular cursor-pointer py-2 text-ink-2 pointer-coarse:py-3.5">Context window: {windowText(use)}</summary>
      <div className="max-w-[560px] pb-3">
        <Parts use={use} />
      </div>
    </details>
  );
}
