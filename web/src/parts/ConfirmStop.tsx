/** ConfirmStop: the one question before work is stopped. It names what stops. */
import { Square } from "lucide-react";
import type { ReactNode } from "react";
import { Button, Dialog, DialogActions } from "@/ui";

interface Props {
  title: string;
  /** What stops. */
  children: ReactNode;
  isPending?: boolean;
  isEmpty?: boolean;
  onStop: () => void;
  onClose: () => void;
}

export function ConfirmStop({ title, children, isPending = false, isEmpty = false, onStop, onClose }: Props) {
  return (
    <Dialog open onOpenChange={(isOpen) => !isOpen && onClose()} title={title} description="What was done is kept, and you can start it again.">
      <div className="mb-4 text-sm">{children}</div>
      <DialogActions>
        <Button onClick={onClose}>Keep working</Button>
        <Button variant="danger" disabled={isPending || isEmpty} onClick={onStop}>
          <Square className="size-3.5" aria-hidden /> {isPending ? "Stopping…" : "Stop"}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
