/** EmergencyStop: stops all work of all teams after a confirmation, lists what was stopped, and resumes it. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { OctagonX, Play } from "lucide-react";
import type { Schemas } from "@/api/client";
import { capitalize, fullTime, plural } from "@/lib/format";
import { Section } from "@/views/operations/parts";
import { resumeAllWork, stoppedBy } from "@/views/operations/workStop";
import { useShell } from "@/parts/shellState";
import { Button, Chip } from "@/ui";
import { LANE_LABELS } from "@/parts/taskStatus";

export function EmergencyStop({ stopped }: { stopped: Schemas["WorkStopView"] | null }) {
  const resume = useMutation({ mutationFn: resumeAllWork });
  if (stopped) {
    return (
      <Section
        title="All work is stopped"
        description={`Since ${fullTime(stopped.at)}, ${stoppedBy(stopped)}. Nothing begins until you resume it, also after a restart. Tasks continue where they stopped.`}
        action={
          <Button variant="primary" disabled={resume.isPending} onClick={() => resume.mutate()}>
            <Play className="size-4" aria-hidden /> {resume.isPending ? "Resuming…" : "Resume all work"}
          </Button>
        }
      >
        <p className="px-4 py-2.5 text-sm">
          {plural(stopped.running, "task was", "tasks were")} interrupted, {plural(stopped.queued, "task was", "tasks were")} ready to run.
        </p>
        <ul className="divide-y divide-line border-t border-line empty:hidden">
          {stopped.interrupted.map((task) => (
            <li key={task.node_id} className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-2 text-sm">
              <Link to={`/t/${task.team_id}/board?node=${task.node_id}` as "/"} dir="auto" className="min-w-0 flex-1 basis-60 truncate underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11 pointer-coarse:leading-[44px]">
                {task.title}
              </Link>
              <span dir="auto" className="text-xs text-ink-2">
                {capitalize(task.agent)} · {task.team}
              </span>
              <Chip>{LANE_LABELS[task.lane]}</Chip>
            </li>
          ))}
        </ul>
      </Section>
    );
  }
  return (
    <Section
      title="Emergency stop"
      description="Interrupts every agent of every team at once and ends their commands. Nothing is cancelled: tasks continue where they stopped when you resume them."
      action={
        <Button variant="danger" onClick={() => useShell.getState().setOpen("stopDialog", true)}>
          <OctagonX className="size-4" aria-hidden /> Stop all work
        </Button>
      }
    />
  );
}
