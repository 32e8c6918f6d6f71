/** EffortSetting: how much the model of an agent or of a task thinks, as a choice that is saved at once. */
import { useMutation } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { type Effort, EFFORTS } from "@/parts/teamFields";
import { showError } from "@/parts/toast";

interface Props {
  value: Effort | null;
  /** What counts without a choice, such as “As for the team”. */
  unset: string;
  agent?: string;
  node?: string;
}

export default function EffortSetting({ value, unset, agent, node }: Props) {
  const save = useMutation({
    mutationFn: async (effort: Effort | "default") => {
      if (agent) await unwrap(api.PATCH("/api/agents/{agent}", { params: { path: { agent } }, body: { effort } }));
      if (node) await unwrap(api.PATCH("/api/nodes/{node}", { params: { path: { node } }, body: { effort } }));
    },
    onSuccess: () => queryClient.invalidateQueries({ queryKey: agent ? ["agents"] : ["node", node] }),
    onError: (error) => showError("The effort could not be changed", error),
  });
  const shown = save.isPending ? (save.variables === "default" ? null : save.variables) : value;
  return (
    <select
      aria-label={node ? "Thinking effort of this task" : "Thinking effort"}
      title="How much the model thinks before it answers, from its next start on"
      className="h-7 max-w-full rounded-sm border border-line-2 bg-surface px-1.5 text-sm text-ink pointer-coarse:h-10"
      value={shown ?? ""}
      onChange={(event) => save.mutate((event.target.value || "default") as Effort | "default")}
    >
      <option value="">{unset}</option>
      {EFFORTS.map(([effort, text]) => (
        <option key={effort} value={effort}>
          {text}
        </option>
      ))}
    </select>
  );
}
