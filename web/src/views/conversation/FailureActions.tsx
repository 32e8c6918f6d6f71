/** FailureActions: what a person can do about a task that was cancelled, failed or stopped early: start it again, change its model, extend its limits. Each is offered where it helps. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Cpu, KeyRound, RotateCw } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { api, type Schemas, unwrap } from "@/api/client";
import { nodeQuery, queryClient } from "@/api/queries";
import { Button, Dialog, Loading } from "@/ui";
import { canExtend, ExtendButton, type NodeDetail } from "@/parts/Extend";
import { isFinished } from "@/lib/endings";
import { showError, showToast } from "@/parts/toast";

const KeyForm = lazyChunk(async () => ({ default: (await import("@/views/models/SetUpModel")).KeyForm }));
const ChangeModelForm = lazyChunk(() => import("@/views/models/ChangeModelForm"));

type StopReason = NonNullable<NodeDetail["stop_reason"]>;
/** Reasons that another model may remove: the model cannot be used, says nothing, or goes round in circles. */
const REASONS_OF_MODELS: ReadonlySet<StopReason> = new Set(["model_refused", "silent", "looping", "no_result"]);

const canRetry = (node: NodeDetail): boolean => node.lane === "work" && (node.status === "failed" || node.status === "partial" || (node.status === "cancelled" && node.stop_reason !== "skipped"));
const again = (node: NodeDetail): string => (node.status === "cancelled" ? "Start again" : "Try again");
const canChangeModel = (node: NodeDetail): boolean => node.status === "failed" && node.assignee_id !== null && node.stop_reason !== null && REASONS_OF_MODELS.has(node.stop_reason);

/** `size` is that of the buttons beside it. */
export default function FailureActions({ node, size = "sm" }: { node: string; size?: "sm" | "md" }) {
  const { data } = useQuery(nodeQuery(node));
  const retry = useRetry(node);
  if (!data) return null;
  return (
    <>
      {canRetry(data) && (
        <Button size={size} title={again(data)} disabled={retry.isPending} onClick={() => retry.mutate()}>
          <RotateCw className={size === "sm" ? "size-3.5" : "size-4"} aria-hidden /> <Label size={size}>{again(data)}</Label>
        </Button>
      )}
      {canChangeModel(data) && <ChangeModel agent={data.assignee_id!} team={data.team_id} size={size} then="Change and try again" onChanged={() => retry.mutate()} />}
      {isFinished(data.status) && canExtend(data) && <ExtendButton node={data} size={size} />}
    </>
  );
}

/** In a narrow header only the icon is shown. */
const Label = ({ size, children }: { size: "sm" | "md"; children: string }) => (size === "sm" ? children : <span className="@max-lg:sr-only">{children}</span>);

function useRetry(node: string) {
  return useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/retry", { params: { path: { node } } })),
    onSuccess: (started) => {
      showToast("The task starts again where it stopped.");
      for (const key of [["node", node], ["whole-board", started.team_id], ["inbox"]]) void queryClient.invalidateQueries({ queryKey: key });
    },
    onError: (error) => showError("The task could not be started again", error),
  });
}

/** A button that asks for another key of a provider. With one that works, all that waits for it goes on by itself. */
export function EnterKey({ provider }: { provider: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const done = ({ is_stored }: Schemas["SetupView"]) => {
    if (!is_stored) return;
    setIsOpen(false);
    showToast("The key works. What waited for it goes on.");
  };
  return (
    <>
      <Button size="sm" variant="primary" onClick={() => setIsOpen(true)}>
        <KeyRound className="size-3.5" aria-hidden /> Enter a key
      </Button>
      {isOpen && (
        <Dialog open onOpenChange={setIsOpen} title={`A key for ${provider}`}>
          <Suspense fallback={<Loading label="Opening the form" />}>
            <KeyForm providers={[provider]} initial={provider} takesFocus onDone={done} />
          </Suspense>
        </Dialog>
      )}
    </>
  );
}

/** A button that gives an agent another model. `then` is what its dialog says on the button that saves it. */
export function ChangeModel({ agent, team, size = "sm", then, onChanged }: { agent: string; team: string; size?: "sm" | "md"; then: string; onChanged: () => void }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button size={size} title="Change model" onClick={() => setIsOpen(true)}>
        <Cpu className={size === "sm" ? "size-3.5" : "size-4"} aria-hidden /> <Label size={size}>Change model</Label>
      </Button>
      <Dialog open={isOpen} onOpenChange={setIsOpen} title="Change the model" description="The agent uses it from its next step on, for this task and for later ones.">
        <Suspense>{isOpen && <ChangeModelForm agent={agent} team={team} then={then} onChanged={onChanged} onClose={() => setIsOpen(false)} />}</Suspense>
      </Dialog>
    </>
  );
}
