/** ChangeModelForm: asks which model an agent shall use from now on. Loaded when it is opened. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, errorMessage, unwrap } from "@/api/client";
import { agentsQuery, queryClient, queryKeys } from "@/api/queries";
import { ModelField } from "@/views/models/ModelField";
import { Button } from "@/ui";

export default function ChangeModelForm({ agent, team, then, onChanged, onClose }: { agent: string; team: string; then: string; onChanged: () => void; onClose: () => void }) {
  const now = useQuery(agentsQuery(team)).data?.find((one) => one.id === agent)?.model;
  const [model, setModel] = useState("");
  const change = useMutation({
    mutationFn: () => unwrap(api.PATCH("/api/agents/{agent}", { params: { path: { agent } }, body: { model: model.trim() } })),
    onSuccess: () => {
      void queryClient.invalidateQueries({ queryKey: queryKeys.agents(team) });
      onClose();
      onChanged();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (model.trim()) change.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3 text-sm">
      {now && (
        <p className="text-ink-2">
          Now it uses <code dir="ltr">{now}</code>.
        </p>
      )}
      <ModelField
        label="Model"
        takesFocus
        value={model}
        onChange={(name) => {
          change.reset();
          setModel(name);
        }}
        problem={change.error ? errorMessage(change.error) : ""}
      />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="primary" type="submit" disabled={change.isPending || !model.trim()}>
          {then}
        </Button>
      </div>
    </form>
  );
}
