/** SandboxWarning: warnings on every screen: all work is stopped, or nothing confines the commands of agents. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { OctagonX, ShieldAlert } from "lucide-react";
import type { ReactNode } from "react";
import { fullTime } from "@/lib/format";
import { statusQuery } from "@/shell/serverQueries";

export default function SandboxWarning() {
  const status = useQuery(statusQuery).data;
  return (
    <>
      {status?.stopped_at && (
        <Warning icon={<OctagonX />}>
          All work is stopped since {fullTime(status.stopped_at)}.{" "}
          <Link to="/operations" className="font-medium underline underline-offset-2">
            Resume it
          </Link>
        </Warning>
      )}
      {status?.sandbox.level === "none" && <Warning icon={<ShieldAlert />}>{status.sandbox.description}</Warning>}
    </>
  );
}

const Warning = ({ icon, children }: { icon: ReactNode; children: ReactNode }) => (
  <div role="alert" className="flex shrink-0 items-start gap-2 border-b border-wait-line bg-wait-bg px-4 py-2 text-sm [&_svg]:mt-0.5 [&_svg]:size-4 [&_svg]:shrink-0 [&_svg]:text-wait">
    {icon}
    <p className="min-w-0">{children}</p>
  </div>
);
