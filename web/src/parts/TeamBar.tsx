/** TeamBar: a bar on every screen of a team that is paused, was stopped or has failed, with the button that lets it go on. */
import { useMutation } from "@tanstack/react-query";
import { Pause, Play, RotateCw, Square } from "lucide-react";
import type { Team } from "@/api/client";
import { useLive } from "@/live";
import { canStartAgain, runTeamAction } from "@/parts/teamState";
import { Button } from "@/ui";

export default function TeamBar({ team }: { team: Team }) {
  const isLive = useLive((state) => state.connection === "live");
  const resume = useMutation({ mutationFn: () => runTeamAction(team, "resume") });
  const isPaused = team.status === "paused";
  if (!isPaused && !canStartAgain(team)) return null;
  const Icon = isPaused ? Pause : Square;
  return (
    <div role="status" data-team-bar className="flex min-h-10 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-sunken px-4 py-1 text-sm max-md:px-3">
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      <span className="min-w-0 flex-1 basis-44">
        {isPaused ? "The team is paused. Nothing starts until you resume it." : team.state === "failed" ? "The goal of this team failed. What was done is kept." : "This team was stopped. What was done is kept."}
      </span>
      <Button size="sm" variant={isPaused ? "primary" : "outline"} disabled={!isLive || resume.isPending} onClick={() => resume.mutate()}>
        {isPaused ? <Play className="size-3.5" aria-hidden /> : <RotateCw className="size-3.5" aria-hidden />} {isPaused ? "Resume" : "Start again"}
      </Button>
    </div>
  );
}
