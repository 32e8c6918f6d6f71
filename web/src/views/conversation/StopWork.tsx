/** StopWork: the button that stops the work of a conversation, after it was said what stops. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Square } from "lucide-react";
import { useState } from "react";
import { type Agent, api, errorMessage, type Team, unwrap } from "@/api/client";
import { jobsQuery, queryClient, queryKeys } from "@/api/queries";
import { plural } from "@/lib/format";
import { ConfirmStop } from "@/parts/ConfirmStop";
import { showNote, showToast } from "@/parts/toast";
import { Literal } from "@/reading/Literal";
import { Button } from "@/ui";
import { type Job, jobsOf } from "@/views/conversation/jobs";

const titleOf = (job: Job): string => job.title || "its work";

/** Return what stops with a piece of work. */
function below({ tasks, tasks_done }: Job): string {
  const open = tasks - tasks_done;
  return open > 0 ? ` and ${plural(open, "open task")} below it` : "";
}

export function StopWork({ team, agent, isCoordinator }: { team: Team; agent: Agent; isCoordinator: boolean }) {
  const { data } = useQuery(jobsQuery(team.id));
  const jobs = jobsOf(data ?? [], agent, isCoordinator);
  const [isAsking, setIsAsking] = useState(false);
  /** The work that goes on although the rest stops. */
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set());
  const chosen = jobs.filter((job) => !kept.has(job.node_id));
  const stop = useMutation({
    mutationFn: () => Promise.all(chosen.map((job) => unwrap(api.POST("/api/nodes/{node}/cancel", { params: { path: { node: job.node_id } } })))),
    onSuccess: () => showToast(chosen.some((job) => job.state === "running") ? "It stops at its next step." : "It is stopped."),
    onError: (error) => showNote(errorMessage(error), true),
    onSettled: () => {
      setIsAsking(false);
      for (const key of [["node"], queryKeys.jobs(team.id), queryKeys.board(team.id)]) void queryClient.invalidateQueries({ queryKey: key });
    },
  });
  const only = jobs.length === 1 ? jobs[0] : undefined;
  if (jobs.length === 0) return null;
  return (
    <>
      <Button
        variant="outline"
        onClick={() => {
          setKept(new Set());
          setIsAsking(true);
        }}
      >
        <Square className="size-3.5" aria-hidden /> Stop
      </Button>
      {isAsking && (
        <ConfirmStop title={only ? "Stop this work?" : "Stop which work?"} isPending={stop.isPending} isEmpty={chosen.length === 0} onStop={() => stop.mutate()} onClose={() => setIsAsking(false)}>
          {only ? (
            <p>
              <b dir="auto" className="font-semibold">
                <Literal text={titleOf(only)} keepEmoji />
              </b>
              {below(only)} {only.tasks > only.tasks_done ? "stop" : "stops"} at the next step.
            </p>
          ) : (
            <ul className="scroll max-h-[40vh]">
              {jobs.map((job) => (
                <li key={job.node_id}>
                  <label className="flex min-h-8 items-center gap-2 pointer-coarse:min-h-11">
                    <input type="checkbox" checked={!kept.has(job.node_id)} onChange={(event) => setKept(new Set(event.target.checked ? [...kept].filter((id) => id !== job.node_id) : [...kept, job.node_id]))} />
                    <span className="min-w-0">
                      <Literal text={titleOf(job)} keepEmoji />
                      <span className="text-ink-3">{below(job)}</span>
                    </span>
                  </label>
                </li>
              ))}
            </ul>
          )}
        </ConfirmStop>
      )}
    </>
  );
}
