/** SandboxWarning: warnings on every screen: all work is stopped, or nothing confines the commands of agents. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { OctagonX, ShieldAlert } from "lucide-react";
import type { ReactNode } from "react";
import { fullTime } from "@/lib/format";
import { resumeAllWork } from "@/views/operations/workStop";
import { statusQuery } from "@/parts/serverQueries";
import { Button } from "@/ui";

export default function SandboxWarning() {
  const status = useQuery(statusQuery).data;
  const resume = useMutation({ mutationFn: resumeAllWork });
  return (
    <>
      {status?.stopped_at && (
        <Warning
          icon={<OctagonX />}
          action={
            <Button size="sm" className="ml-auto" disabled={resume.isPending} onClick={() => resume.mutate()}>
              {resume.isPending ? "Resuming…" : "Resume all work"}
            </Button>
          }
        >
          All work has been stopped since {fullTime(status.stopped_at)}. Nothing starts until you resume it.{" "}
          <Link to="/operations" className="underline underline-offset-2">
            Show what was stopped
          </Link>
        </Warning>
      )}
      {status?.sandbox.level === "none" && <Warning icon={<ShieldAlert />}>{status.sandbox.description}</Warning>}
    </>
  );
}

const Warning = ({ icon, action, children }: { icon: ReactNode; action?: ReactNode; children: ReactNode }) => (
  <div role="alert" className="flex shrink-0 flex-wrap items-center gap-2 border-b border-wait-line bg-wait-bg px-4 py-2 text-sm [&>svg]:size-4 [&>svg]:shrink-0 [&>svg]:text-wait">
    {icon}
    <div className="min-w-0 flex-1 basis-60">{children}</div>
    {action}
  </div>
);
