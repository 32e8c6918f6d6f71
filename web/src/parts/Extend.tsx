/** Extend: a button that gives a task more of its limits; one that a limit ended goes on. */
import { TimerReset } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import type { Schemas } from "@/api/client";
import { Button, Dialog } from "@/ui";
import { ENDED_BY, isFinished } from "@/lib/endings";

const ExtendForm = lazyChunk(() => import("@/parts/ExtendForm"));

export type NodeDetail = Schemas["NodeDetail"];

/** Whether more room lets this task go on. */
export function canExtend(node: NodeDetail): boolean {
  if (node.lane !== "work") return false;
  if (!isFinished(node.status) || node.status === "partial") return true;
  return node.status === "failed" && node.stop_reason !== null && node.stop_reason in ENDED_BY;
}

/** `size` is that of the buttons beside it. */
export function ExtendButton({ node, className, size = "sm" }: { node: NodeDetail; className?: string; size?: "sm" | "md" }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button size={size} title="Extend" className={className} onClick={() => setIsOpen(true)}>
        <TimerReset className={size === "sm" ? "size-3.5" : "size-4"} aria-hidden /> {size === "sm" ? "Extend" : <span className="@max-lg:sr-only">Extend</span>}
      </Button>
      <Dialog open={isOpen} onOpenChange={setIsOpen} title="Extend the limits" description={isFinished(node.status) ? "The task goes on where it stopped." : "The task goes on with the new limits."}>
        <Suspense>{isOpen && <ExtendForm node={node} onDone={() => setIsOpen(false)} />}</Suspense>
      </Dialog>
    </>
  );
}
