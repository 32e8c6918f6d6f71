/** ExtendForm: asks how much more of each limit a task gets. Loaded when it is opened. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { Button, Input } from "@/ui";
import { ENDED_BY, isFinished, type Limit } from "@/lib/endings";
import { showError, showToast } from "@/parts/toast";

/** The limits as the form shows them; time is entered in minutes. */
const LIMITS: readonly { name: Limit; label: string; suggestion: string; step: string; factor: number }[] = [
  { name: "turns", label: "Turns", suggestion: "50", step: "1", factor: 1 },
  { name: "tokens", label: "Tokens", suggestion: "1000000", step: "1", factor: 1 },
  { name: "usd", label: "Dollars", suggestion: "5", step: "any", factor: 1 },
  { name: "seconds", label: "Minutes", suggestion: "60", step: "any", factor: 60 },
];

export default function ExtendForm({ node, onDone }: { node: Schemas["NodeDetail"]; onDone: () => void }) {
  const endedBy = node.stop_reason ? ENDED_BY[node.stop_reason] : undefined;
  // The limit that ended it may be one of the goal that pays for it: that one is raised, then.
  const shown = LIMITS.filter(({ name }) => node.budget[name] != null || name === endedBy);
  const [amounts, setAmounts] = useState<Partial<Record<Limit, string>>>(() => Object.fromEntries(shown.filter(({ name }) => name === endedBy).map(({ name, suggestion }) => [name, suggestion])));
  const more = Object.fromEntries(shown.flatMap(({ name, factor }) => (amounts[name] ? [[name, Number(amounts[name]) * factor]] : [])));
  const extend = useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/extend", { params: { path: { node: node.id } }, body: more })),
    onSuccess: () => {
      onDone();
      void queryClient.invalidateQueries({ queryKey: ["node", node.id] });
      for (const queryKey of [["whole-board", node.team_id], ["team-settings", node.team_id], queryKeys.cost(node.team_id)]) void queryClient.invalidateQueries({ queryKey });
      showToast(isFinished(node.status) ? "The task goes on where it stopped." : "The limits were raised.");
    },
    onError: (error) => showError("The task could not be extended", error),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    extend.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      {shown.map(({ name, label, step, factor }, index) => (
        <label key={name} className="grid grid-cols-[1fr_140px] items-center gap-3 text-sm">
          <span>
            More {label.toLowerCase()} <span className="tabular text-xs text-ink-3">{node.budget[name] == null ? "for the goal that pays for it" : `now ${(Number(node.budget[name]) / factor).toLocaleString()}`}</span>
          </span>
          <Input autoFocus={index === 0} type="number" min="0" step={step} inputMode="decimal" value={amounts[name] ?? ""} onChange={(event) => setAmounts({ ...amounts, [name]: event.target.value })} />
        </label>
      ))}
      <div className="flex justify-end gap-2">
        <Button onClick={onDone}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={extend.isPending || Object.values(more).every((amount) => !(amount > 0))}>
          Extend
        </Button>
      </div>
    </form>
  );
}
