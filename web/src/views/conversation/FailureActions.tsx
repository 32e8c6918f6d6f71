/** FailureActions: what is left of a task that stopped early, and what a person can do about one that was cancelled, failed or stopped early: start it again, change its model, extend its limits. Each is offered where it helps. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Cpu, FileText, KeyRound, RotateCw } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { api, type Schemas, unwrap } from "@/api/client";
import { nodeQuery, queryClient } from "@/api/queries";
import { Button, Dialog, Loading } from "@/ui";
import { canExtend, ExtendButton, type NodeDetail } from "@/parts/Extend";
import { isFinished } from "@/lib/endings";
import { screenHref } from "@/lib/screens";
import { Literal } from "@/reading/Literal";
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

const MOST_FILES = 8;

/** The files that work which stopped early has left: what it has published, else what lies in its folder. */
export function WorkFiles({ node }: { node: string }) {
  const { data } = useQuery(nodeQuery(node));
  const folder = `nodes/${node}/`;
  const left = (data?.files ?? []).filter((file) => file.kind === "file" && !file.path.split("/").at(-1)!.startsWith("_"));
  const published = left.filter((file) => file.path.startsWith(`${folder}published/`));
  const files = published.length > 0 ? published : left;
  if (!data || files.length === 0) return null;
  const more = files.length - MOST_FILES;
  return (
    <ul aria-label="Files" className="mt-1 flex flex-wrap gap-x-4 text-sm">
      {files.slice(0, MOST_FILES).map((file) => (
        <li key={file.path} className="min-w-0">
          <Link to={screenHref(data.team_id, "files", file.path) as "/"} title={file.path} className="flex min-h-7 min-w-0 items-center gap-1.5 hover:underline pointer-coarse:min-h-11">
            <FileText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
            <span dir="ltr" className="truncate">
              <Literal text={file.path.slice(folder.length).replace(/^(published|scratch)\//, "")} keepEmoji />
            </span>
          </Link>
        </li>
      ))}
      {more > 0 && (
        <li>
          <Link to={screenHref(data.team_id, "board", "", `?node=${node}`) as "/"} className="inline-flex min-h-7 items-center text-ink-2 underline pointer-coarse:min-h-11">
            {more} more
          </Link>
        </li>
      )}
    </ul>
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
