/** TeamDialogs: what a person is asked before a team is stopped or archived, and the question of a research. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { api, errorMessage, nextKey, unwrap } from "@/api/client";
import { jobsQuery } from "@/api/queries";
import { plural } from "@/lib/format";
import { randomId } from "@/lib/randomId";
import { useStoredDraft } from "@/lib/storedDraft";
import { archiveTeam } from "@/parts/archiving";
import { ConfirmStop } from "@/parts/ConfirmStop";
import { useShell } from "@/parts/shellState";
import { runTeamAction } from "@/parts/teamState";
import { showNote } from "@/parts/toast";
import { Literal } from "@/reading/Literal";
import { Button, Dialog, DialogActions, Problem, Textarea } from "@/ui";

type Team = NonNullable<ReturnType<typeof useShell.getState>["asked"]>["team"];
const close = () => useShell.getState().update({ asked: null });

export default function TeamDialogs() {
  const asked = useShell((state) => state.asked);
  switch (asked?.what) {
    case "stop":
      return <StopTeam team={asked.team} />;
    case "archive":
      return <ArchiveTeam team={asked.team} />;
    case "research":
      return <StartResearch team={asked.team} />;
    default:
      return null;
  }
}

const MOST_NAMED = 5;

/** Names the open work of a team before it is stopped. */
function StopTeam({ team }: { team: Team }) {
  const open = (useQuery(jobsQuery(team.id)).data ?? []).filter((job) => job.ended_at === null);
  const more = open.length - MOST_NAMED;
  const stop = () => {
    void runTeamAction(team, "stop");
    close();
  };
  return (
    <ConfirmStop title={`Stop ${team.name}?`} onStop={stop} onClose={close}>
      {open.length === 0 ? (
        <p>Nothing is open. What is scheduled ends.</p>
      ) : (
        <>
          <p>{plural(open.length, "piece of work stops at its next step", "pieces of work stop at their next step")}:</p>
          <ul className="mt-1 list-disc pl-5">
            {open.slice(0, MOST_NAMED).map((job) => (
              <li key={job.node_id}>
                <Literal text={job.title || "its work"} keepEmoji />
              </li>
            ))}
            {more > 0 && <li>and {more} more</li>}
          </ul>
        </>
      )}
    </ConfirmStop>
  );
}

function ArchiveTeam({ team }: { team: Team }) {
  const navigate = useNavigate();
  const archive = async () => {
    close();
    try {
      await archiveTeam(team);
      if (location.pathname.startsWith(`/t/${team.id}/`)) await navigate({ to: "/" });
    } catch (error) {
      showNote(errorMessage(error), true);
    }
  };
  return (
    <Dialog open onOpenChange={close} title={`Archive ${team.name}?`} description="Its work is stopped and it leaves the list. Nothing is deleted: you can restore it under “Archived teams”.">
      <div className="flex justify-end gap-2">
        <Button onClick={close}>Keep the team</Button>
        <Button variant="danger" onClick={() => void archive()}>
          Archive
        </Button>
      </div>
    </Dialog>
  );
}

function StartResearch({ team }: { team: Team }) {
  const [goal, setGoal] = useStoredDraft(`research.${team.id}`);
  const key = useRef(randomId());
  const start = useMutation({
    mutationFn: () => unwrap(api.POST("/api/agents/{agent}/research", { params: { path: { agent: team.coordinator_id! }, header: { "idempotency-key": key.current } }, body: { goal: goal.trim() } })),
    onSuccess: () => {
      setGoal("");
      close();
      showNote(`${team.name} looks into it. The report comes to the inbox.`);
    },
    onError: (error) => void (key.current = nextKey(key.current, error)),
  });
  return (
    <Dialog open onOpenChange={close} title="Research a question" description={`${team.name} searches the web in the background, and reports to you with its sources.`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          start.mutate();
        }}
      >
        <Textarea aria-label="Question" rows={4} required placeholder="What do you want to know?" value={goal} onChange={(event) => setGoal(event.target.value)} className="mb-4" />
        <Problem of={start.error} className="mb-3 text-sm" />
        <DialogActions>
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={start.isPending || goal.trim() === ""}>
            {start.isPending ? "Starting…" : "Start the research"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
