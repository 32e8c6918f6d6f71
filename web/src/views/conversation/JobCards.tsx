/** JobCards: the work that runs for a conversation and has no question on screen, above the field where the person writes: how far it is and what it costs. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, Hourglass, LoaderCircle, Search } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import type { Agent, Team } from "@/api/client";
import { jobsQuery, nodeQuery } from "@/api/queries";
import { type Job, jobFacts, jobsOf, jobText } from "@/views/conversation/jobs";
import { Literal } from "@/reading/Literal";
import { withoutEmphasis } from "@/reading/plainText";
import { cx } from "@/lib/cx";
import { capitalize, plural } from "@/lib/format";
import { useIsStopped } from "@/parts/serverQueries";
import { screenHref } from "@/lib/screens";
import { useNow } from "@/parts/RelativeTime";
import { Sources } from "@/parts/Sources";
import { isAskedBy, useQuestionsInView, useTeamQuestions } from "@/parts/unanswered";

const ResearchCard = lazyChunk(() => import("@/views/research/ResearchCard"));

/** More open work is counted, and listed on the board. */
const MOST_CARDS = 3;

export default function JobCards({ team, agent, isCoordinator }: { team: Team; agent: Agent; isCoordinator: boolean }) {
  const { data } = useQuery(jobsQuery(team.id));
  const inView = useQuestionsInView((state) => state.ids);
  const shown = useTeamQuestions(team.id).filter((item) => inView.has(item.message.id));
  const jobs = jobsOf(data ?? [], agent, isCoordinator).filter((job) => job.state !== "waiting" || !shown.some((item) => isAskedBy(item, job.node_id)));
  const now = useNow(1000, jobs.length > 0);
  if (jobs.length === 0) return null;
  const more = jobs.length - MOST_CARDS;
  return (
    <section aria-label="Work in progress" className="shrink-0 px-4 pb-2 max-md:px-3">
      <ul className="scroll max-h-[38vh] divide-y divide-line rounded-md border border-line bg-surface">
        {jobs.slice(0, MOST_CARDS).map((job) => (
          <JobCard key={job.node_id} job={job} team={team.id} now={now} />
        ))}
        {more > 0 && (
          <li className="px-3 py-1.5 text-xs">
            <Link to={screenHref(team.id, "board") as "/"} className="text-ink-2 underline">
              {plural(more, "more task", "more tasks")} on the board
            </Link>
          </li>
        )}
      </ul>
    </section>
  );
}

const ICONS = { running: LoaderCircle, waiting: Hourglass } as const;

function JobCard({ job, team, now }: { job: Job; team: string; now: number }) {
  const [isOpen, setIsOpen] = useState(false);
  const isStopped = useIsStopped();
  const node = useQuery(nodeQuery(job.node_id)).data;
  const Icon = job.is_research ? Search : (ICONS[job.state as keyof typeof ICONS] ?? Hourglass);
  const title = job.title || "its work";
  return (
    <li className="px-3 py-1.5">
      <div className="flex items-center gap-2">
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)} className="flex min-h-7 min-w-0 flex-1 items-center gap-2 rounded-sm text-left text-sm pointer-coarse:min-h-10">
          <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3 transition-transform", isOpen && "rotate-90")} aria-hidden />
          <Icon className={cx("size-4 shrink-0", job.state === "running" ? "text-work" : "text-ink-3")} aria-hidden />
          <span className="min-w-0 flex-1 truncate font-medium" dir="ltr">
            <Literal text={title} keepEmoji />
          </span>
          <span className="tabular shrink-0 text-xs text-ink-3 max-md:hidden">{jobFacts(job, node?.cost.usd ?? null, now)}</span>
        </button>
      </div>
      <p className={cx("ml-[22px] text-xs text-ink-2", !isOpen && "truncate")}>
        <span dir="ltr" className={isOpen ? "literal" : ""}>
          <Literal text={capitalize(withoutEmphasis(jobText({ ...job, progress: isOpen ? (job.is_research ? "" : job.progress) : job.progress.split("\n")[0]! }, isStopped)))} keepEmoji />
        </span>
      </p>
      {isOpen && (
        <div className="ml-[22px] text-xs text-ink-2">
          {!job.is_research && <p className="tabular md:hidden">{jobFacts(job, node?.cost.usd ?? null, now)}</p>}
          {job.is_research && (
            <Suspense fallback={<p>Loading the plan …</p>}>
              <ResearchCard node={job.node_id} />
            </Suspense>
          )}
          <Sources of={job.sources} />
          <p className="mt-1 flex flex-wrap gap-x-4 leading-6">
            <Link to={screenHref(team, "board", "", `?node=${job.node_id}`) as "/"} className="underline pointer-coarse:leading-10">
              On the board
            </Link>
            {node?.thread_id && (
              <Link to={screenHref(team, "threads", node.thread_id) as "/"} className="underline pointer-coarse:leading-10">
                All steps
              </Link>
            )}
          </p>
        </div>
      )}
    </li>
  );
}
