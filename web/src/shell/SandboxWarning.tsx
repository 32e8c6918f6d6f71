/** SandboxWarning: a permanent warning on every screen if nothing confines the commands of agents. */
import { useQuery } from "@tanstack/react-query";
import { ShieldAlert } from "lucide-react";
import { statusQuery } from "@/shell/serverQueries";

export default function SandboxWarning() {
  const sandbox = useQuery(statusQuery).data?.sandbox;
  if (sandbox?.level !== "none") return null;
  return (
    <p role="alert" className="flex shrink-0 items-start gap-2 border-b border-wait-line bg-wait-bg px-4 py-2 text-sm">
      <ShieldAlert className="mt-0.5 size-4 shrink-0 text-wait" aria-hidden />
      {sandbox.description}
    </p>
  );
}
