/** EndOfTeam: export a team, archive it, or delete it for good. */
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Archive, Download, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, type Team, unwrap } from "@/api/client";
import { overviewQuery, queryClient, queryKeys } from "@/api/queries";
import { withKey } from "@/api/session";
import { Section } from "@/views/settings/Section";
import { archiveTeam } from "@/parts/archiving";
import { isAtWork } from "@/parts/teamState";
import { Button, Dialog, DialogActions, Input, Problem } from "@/ui";
import { showToast } from "@/parts/toast";

export function EndOfTeam({ team }: { team: Team }) {
  const navigate = useNavigate();
  const [confirming, setConfirming] = useState<"archive" | "delete" | null>(null);
  const archive = useMutation({
    mutationFn: () => archiveTeam(team),
    onSuccess: () => navigate({ to: "/" }),
  });
  return (
    <Section id="export" title="Export, archive, delete">
      <Step title="Export" about="A ZIP file with everything: messages, board, threads, costs, memories and files. Known API keys are overwritten.">
        {/* A link: the browser saves the file while it arrives, however large it is. */}
        <a href={withKey(`/api/teams/${team.id}/export`)} download className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 font-medium hover:bg-hover pointer-coarse:min-h-11">
          <Download className="size-4" aria-hidden /> Download
        </a>
      </Step>
      {team.status !== "archived" && (
        <Step title="Archive" about="Stops its work and takes it off the list. Nothing is deleted.">
          <Button onClick={() => setConfirming("archive")}>
            <Archive className="size-4" aria-hidden /> Archive the team
          </Button>
        </Step>
      )}
      <Step title="Delete for good" about="Removes all of it: messages, files, work, memories, costs. It cannot be undone; export it first if you may need it.">
        <Button variant="danger" onClick={() => setConfirming("delete")}>
          <Trash2 className="size-4" aria-hidden /> Delete the team
        </Button>
      </Step>
      <Dialog open={confirming === "archive"} onOpenChange={() => setConfirming(null)} title={`Archive ${team.name}?`} description="Its work is stopped and it leaves the list. Nothing is deleted.">
        <Problem of={archive.error} className="text-sm font-normal" />
        <div className="flex justify-end gap-2">
          <Button onClick={() => setConfirming(null)}>Keep the team</Button>
          <Button variant="danger" disabled={archive.isPending} onClick={() => archive.mutate()}>
            Archive
          </Button>
        </div>
      </Dialog>
      {confirming === "delete" && <DeleteDialog team={team} onClose={() => setConfirming(null)} onDeleted={() => navigate({ to: "/" })} />}
    </Section>
  );
}

const Step = ({ title, about, children }: { title: string; about: string; children: ReactNode }) => (
  <div className="flex flex-wrap items-center gap-x-6 gap-y-2">
    <div className="min-w-0 flex-1 basis-72">
      <h3 dir="auto" className="font-medium">{title}</h3>
      <p dir="auto" className="text-ink-2">{about}</p>
    </div>
    {children}
  </div>
);

function DeleteDialog({ team, onClose, onDeleted }: { team: Team; onClose: () => void; onDeleted: () => Promise<void> }) {
  const [typed, setTyped] = useState("");
  const remove = useMutation({
    // The person sees that its work ends, and types the name: so it need not be stopped first.
    mutationFn: () => unwrap(api.POST("/api/teams/{team}/delete", { params: { path: { team: team.id } }, body: { name: typed.trim(), stop: true } })),
    onSuccess: async () => {
      // The start page opens the last place of a team that is in the list: the deleted team must leave it first.
      await queryClient.cancelQueries({ queryKey: queryKeys.overview });
      queryClient.setQueryData(overviewQuery.queryKey, (teams) => teams?.filter(({ id }) => id !== team.id));
      await onDeleted();
      queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey.includes(team.id) });
      await Promise.all([queryKeys.overview, queryKeys.archived, queryKeys.inbox, queryKeys.digest].map((queryKey) => queryClient.invalidateQueries({ queryKey })));
      showToast(`${team.name} is deleted.`);
    },
  });
  return (
    <Dialog open onOpenChange={onClose} title={`Delete ${team.name} for good?`} description="Its messages, files, work, memories and costs are removed. This cannot be undone.">
      <form
        className="flex flex-col gap-4 text-sm"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() === team.name.trim()) remove.mutate();
        }}
      >
        {isAtWork(team.state) && <p className="font-medium text-fail">The team has work to do, which ends at once.</p>}
        <label className="flex flex-col gap-1 font-medium">
          <span>
            Type the team's name, <span dir="auto" className="break-words">“{team.name}”</span>
          </span>
          <Input value={typed} onChange={(event) => setTyped(event.target.value)} className="font-normal" autoComplete="off" spellCheck={false} dir="auto" />
        </label>
        <Problem of={remove.error} className="text-sm font-normal" />
        <DialogActions>
          <Button onClick={onClose}>Keep the team</Button>
          <Button variant="danger" type="submit" disabled={remove.isPending || typed.trim() !== team.name.trim()}>
            {remove.isPending ? "Deleting…" : "Delete for good"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
