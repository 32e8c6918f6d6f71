/** NoTeams: the list of teams while it is empty: how to create one, and where archived ones are. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { archivedQuery } from "@/api/queries";
import { useShell } from "@/parts/shellState";
import { Button } from "@/ui";

export default function NoTeams() {
  const archived = useQuery(archivedQuery);
  // Until the archive is known, nothing is said: "No teams yet" would frighten somebody whose teams are archived.
  if (archived.isPending) return null;
  const count = archived.data?.length ?? 0;
  return (
    <div className="flex-1 px-4 pt-2 text-sm text-ink-2">
      {count > 0 ? (
        <p>
          No teams.{" "}
          <Link to="/archive" className="inline-flex items-center underline underline-offset-2 hover:text-ink pointer-coarse:min-h-11">
            {count} archived
          </Link>
        </p>
      ) : (
        <p>No teams yet. A team works towards one goal, and you can talk to anyone in it.</p>
      )}
      <Button className="mt-3 w-full" onClick={() => useShell.getState().setOpen("newTeam", true)}>
        <Plus className="size-4" /> New team
      </Button>
    </div>
  );
}
