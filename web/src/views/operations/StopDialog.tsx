/** StopDialog: asks whether all work of all teams should stop, and stops it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Problem } from "@/views/operations/parts";
import { operationsQuery } from "@/views/operations/queries";
import { stopAllWork } from "@/views/operations/workStop";
import { plural } from "@/lib/format";
import { useShell } from "@/parts/shellState";
import { Button, Dialog, DialogActions } from "@/ui";

export default function StopDialog() {
  const close = () => useShell.getState().setOpen("stopDialog", false);
  const running = useQuery(operationsQuery).data?.queue.running;
  const stop = useMutation({ mutationFn: stopAllWork, onSuccess: close });
  const count = running === undefined ? "" : `${plural(running, "task is", "tasks are")} running. `;
  return (
    <Dialog open onOpenChange={close} title="Stop all work now?" description={`${count}All agents of all teams stop in the middle of their step, also replies to you. A model call that is under way may be paid for twice.`}>
      <Problem error={stop.error} />
      <DialogActions>
        <Button onClick={close}>Keep working</Button>
        <Button variant="danger" disabled={stop.isPending} onClick={() => stop.mutate()}>
          {stop.isPending ? "Stopping…" : "Stop all work"}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
