/** FolderChanges: what agents changed in the folders that a person gave to a team, newest first, with a way to undo it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Undo2 } from "lucide-react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { Literal } from "@/conversation/Literal";
import { fullTime, plural, shortTime } from "@/lib/format";
import { Button } from "@/ui";

const KINDS: Record<Schemas["FolderChangeView"]["kind"], string> = { made: "Made", changed: "Changed", removed: "Removed" };
const NEWEST = 50;

export function FolderChanges({ team }: { team: string }) {
  const changes = useQuery({ queryKey: queryKeys.folderChanges(team), queryFn: () => unwrap(api.GET("/api/teams/{team}/changes", { params: { path: { team }, query: { limit: NEWEST } } })) });
  const undo = useMutation({
    mutationFn: (paths: string[]) => unwrap(api.POST("/api/teams/{team}/undo", { params: { path: { team } }, body: { paths, force: false } })),
    onSettled: () => queryClient.invalidateQueries({ queryKey: queryKeys.folderChanges(team) }),
  });
  const found = changes.data ?? [];
  const problem = changes.error ?? undo.error;
  if (found.length === 0 && !problem) return null;
  return (
    <section aria-label="Changes in its folders" className="font-normal">
      <h3 className="font-medium">Changes in its folders</h3>
      <ul className="scroll max-h-60 divide-y divide-line" tabIndex={-1}>
        {found.map((change) => (
          <li key={change.id} className="flex items-center gap-3 py-1.5 text-sm">
            <span id={`change-${change.id}`} dir="ltr" className="min-w-0 flex-1 literal">
              {KINDS[change.kind]} <code className="text-xs"><Literal text={change.path} /></code>
              <time className="ml-2 text-xs text-ink-3" dateTime={change.created_at} title={fullTime(change.created_at)}>
                {shortTime(change.created_at)}
              </time>
            </span>
            {change.node_id === null || change.undone_at ? (
              <span className="text-xs text-ink-3">{change.node_id === null ? "by you" : "undone"}</span>
            ) : !change.is_kept ? (
              <span className="text-xs text-ink-3">no copy is kept</span>
            ) : (
              <Button size="sm" disabled={undo.isPending} aria-describedby={`change-${change.id}`} title="Puts the file back as it was before agents changed it" onClick={() => undo.mutate([change.path])}>
                <Undo2 className="size-3.5" aria-hidden /> Undo
              </Button>
            )}
          </li>
        ))}
      </ul>
      {undo.data && <p role="status" className="text-xs text-ink-2">{undoneText(undo.data)}</p>}
      {problem && (
        <p role="alert" className="text-xs text-fail">
          {errorMessage(problem)}
        </p>
      )}
    </section>
  );
}

/** Return what an undo did, and what it left as it is and why. */
function undoneText({ restored, changed_since, not_kept }: Schemas["UndoneView"]): string {
  return [
    restored.length > 0 && `${plural(restored.length, "file")} put back.`,
    changed_since.length > 0 && `Left as it is, because somebody else has changed it since: ${changed_since.join(", ")}.`,
    not_kept.length > 0 && `Left as it is, because there is no copy: ${not_kept.join(", ")}.`,
  ]
    .filter(Boolean)
    .join(" ");
}
