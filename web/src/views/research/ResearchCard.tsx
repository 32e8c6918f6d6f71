/** ResearchCard: a research job as it runs: its plan with the readers, the pages read, the ledger of quotations, and what it used. */
import { useQuery } from "@tanstack/react-query";
import { ChevronRight, CircleCheck, CircleDashed, LoaderCircle } from "lucide-react";
import { type ReactNode, useState } from "react";
import { errorMessage } from "@/api/client";
import { Literal } from "@/reading/Literal";
import { cx } from "@/lib/cx";
import { money, plural } from "@/lib/format";
import { classLabel, type Evidence, type Research } from "@/views/research/citations";
import { researchQuery } from "@/views/research/researchQuery";

const PHASES: Record<Research["phase"], string> = {
  brief: "plans what to find out",
  reading: "reads",
  gaps: "looks for what is missing",
  writing: "writes the report",
  support: "compares the report with its sources",
  ended: "is done",
};

export default function ResearchCard({ node }: { node: string }) {
  const { data, error } = useQuery(researchQuery(node));
  if (error) return <p className="mt-1 text-fail">{errorMessage(error)}</p>;
  if (!data) return <p className="mt-1 text-ink-3">Loading the plan …</p>;
  const sites = new Set(data.evidence.map((one) => one.site)).size;
  return (
    <div className="mt-1 space-y-2">
      <p className="tabular">
        {[
          `It ${PHASES[data.phase]}`,
          data.depth && `depth ${data.depth}`,
          `${data.searches} of ${plural(data.searches_limit, "search", "searches")}`,
          `${data.pages.length} of ${plural(data.pages_limit, "page")}`,
          `${money(data.usd)}${data.usd_limit === null ? "" : ` of ${money(data.usd_limit)}`}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      <Plan research={data} />
      <Fold label={`${plural(data.evidence.length, "quotation")} from ${plural(sites, "site")}`} isEmpty={data.evidence.length === 0}>
        <Ledger evidence={data.evidence} />
      </Fold>
      <Fold label={`${plural(data.pages.length, "page")} read`} isEmpty={data.pages.length === 0}>
        <ul className="space-y-1">
          {data.pages.map((page) => (
            <li key={page.url}>
              <Literal text={page.title || page.url} keepEmoji /> <span className="text-ink-3">{[page.site, classLabel(page.source_class), page.evidence > 0 && plural(page.evidence, "quotation")].filter(Boolean).join(" · ")}</span>
            </li>
          ))}
        </ul>
      </Fold>
    </div>
  );
}

function Plan({ research }: { research: Research }) {
  if (research.sub_questions.length === 0) return null;
  return (
    <ol aria-label="Plan" className="space-y-1">
      {research.sub_questions.map((one) => {
        const isDone = one.state === "done" || one.state === "partial";
        const Icon = isDone ? CircleCheck : one.node_id === null ? CircleDashed : LoaderCircle;
        return (
          <li key={one.number} className="flex gap-2">
            <Icon className={cx("mt-px size-3.5 shrink-0", isDone ? "text-done" : one.state === "running" ? "text-work" : "text-ink-3")} aria-hidden />
            <span className="min-w-0 flex-1">
              <Literal text={one.question} keepEmoji />{" "}
              <span className="text-ink-3">
                {isDone ? "read" : one.node_id === null ? "not begun" : one.state === "failed" ? "failed" : "reading"} · {plural(one.evidence, "quotation")}
              </span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function Ledger({ evidence }: { evidence: Evidence[] }) {
  return (
    <ul className="space-y-2">
      {evidence.map((one) => (
        <li key={one.id}>
          <p>
            <span className="tabular mr-1.5 text-ink-3">{one.id}</span>
            <Literal text={one.claim} keepEmoji />
            {one.stance === "contradicts" && <span className="ml-1.5 text-wait">contradicts</span>}
          </p>
          <blockquote className="mt-0.5 border-l-2 border-line-2 pl-2 text-ink-2">
            <Literal text={one.quote} keepEmoji />
          </blockquote>
          <p className="text-ink-3">{[one.site, one.published, classLabel(one.source_class), one.checked === "unchecked" && "unchecked"].filter(Boolean).join(" · ")}</p>
        </li>
      ))}
    </ul>
  );
}

/** A heading that opens and closes what is below it. */
function Fold({ label, isEmpty, children }: { label: string; isEmpty: boolean; children: ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  if (isEmpty) return <p className="text-ink-3">{label}</p>;
  return (
    <div>
      <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)} className="flex min-h-6 items-center gap-1 rounded-sm font-medium pointer-coarse:min-h-10">
        <ChevronRight className={cx("size-3 text-ink-3 transition-transform", isOpen && "rotate-90")} aria-hidden /> {label}
      </button>
      {isOpen && <div className="mt-1 ml-4">{children}</div>}
    </div>
  );
}
