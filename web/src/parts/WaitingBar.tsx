/** WaitingBar: a bar on a team's pages while a question of the team is open that is not on screen, with a link to the next one. */
import { Link, useLocation } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";
import { authorOf, titleOf } from "@/parts/entries";
import { isLate, questionAfter, useQuestionsInView, useTeamQuestions } from "@/parts/unanswered";

export default function WaitingBar({ team }: { team: string }) {
  const inView = useQuestionsInView((state) => state.ids);
  const questions = useTeamQuestions(team).filter((item) => !inView.has(item.message.id));
  const href = useLocation({ select: (location) => location.href });
  const next = questionAfter(href, questions);
  if (!next) return null;
  const { message } = next;
  const more = questions.length - 1;
  return (
    <Link
      to="/t/$team/a/$agent"
      params={{ team: message.team_id, agent: message.sender }}
      search={{ at: message.id }}
      data-waiting={message.id}
      className="flex min-h-9 shrink-0 items-center gap-2 border-b border-wait-line bg-wait-bg px-4 text-sm outline-offset-[-2px] hover:brightness-95 max-md:px-3 pointer-coarse:min-h-11"
    >
      <span aria-hidden className="size-2 shrink-0 rotate-45 rounded-[1px] bg-wait-dot" />
      <span className="shrink-0 font-semibold text-wait">{isLate(next) ? "Still open" : "Waiting for you"}</span>
      <span className="flex min-w-0 flex-1 gap-1 text-ink-2">
        <bdi className="shrink-0">{authorOf(next)}: </bdi>
        {/* In its own direction: a long text is cut at its end, and starts beside the name. */}
        <span dir="auto" className="min-w-0 truncate">{titleOf(next)}</span>
      </span>
      {more > 0 && <span className="tabular shrink-0 text-xs text-ink-2">and {more} more</span>}
      <span className="flex shrink-0 items-center gap-1 text-xs font-medium">
        {message.kind === "approval" ? "Decide" : "Answer"} <ArrowRight className="size-3.5" aria-hidden />
      </span>
    </Link>
  );
}
