/** TeamSettings: the dialog that changes a team's settings, and gives it a new goal. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { type Agent, api, errorMessage, type Team, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { FolderChanges } from "@/conversation/FolderChanges";
import { Grants } from "@/conversation/Grants";
import { randomId } from "@/lib/randomId";
import type { Trust } from "@/lib/trust";
import { ModelField } from "@/models/ModelField";
import { meQuery } from "@/shell/AwaySetting";
import { AcceptanceField, type Effort, EffortField, FoldersField, IntervalField, linesOf, type Mode, ModePills, ReachFields, type Review, ReviewField, TrustField } from "@/shell/teamFields";
import { Button, Dialog, DialogActions, Input, Textarea } from "@/ui";

const MODE_NOTES: Record<Mode, string> = {
  finite: "When the goal is reached, the team stops. It still answers you and takes new work.",
  infinite: "The coordinator works in cycles and looks for the next useful step by itself.",
};

export default function TeamSettings({ team, coordinator, onClose }: { team: Team; coordinator: Agent | undefined; onClose: () => void }) {
  const [name, setName] = useState(team.name);
  const [model, setModel] = useState(coordinator?.model ?? "");
  const [mode, setMode] = useState<Mode>(team.mode);
  const [interval, setRestInterval] = useState(team.interval);
  const [effort, setEffort] = useState<Effort | null>(team.effort);
  const [review, setReview] = useState<Review>(team.review);
  const [trust, setTrust] = useState<Trust>(team.trust);
  const givenFolders = team.folders.map((folder) => `${folder.path}:${folder.access}`).join("\n");
  const [folders, setFolders] = useState(givenFolders);
  const [hours, setHours] = useState(team.quiet_hours);
  const [zone, setZone] = useState(team.quiet_zone);
  const [channel, setChannel] = useState(team.channel);
  const me = useQuery(meQuery);
  const [typedName, setTypedName] = useState("");
  const [goal, setGoal] = useState("");
  const [acceptance, setAcceptance] = useState("");
  const [problem, setProblem] = useState("");
  const [isSending, setIsSending] = useState(false);
  // A goal that is sent twice with the same key is set once. After an error the next try is a new request.
  const idempotencyKey = useRef(randomId());

  const changes = {
    ...(name.trim() !== team.name ? { name: name.trim() } : {}),
    ...(coordinator && model.trim() && model.trim() !== coordinator.model ? { model: model.trim() } : {}),
    ...(mode !== team.mode ? { mode } : {}),
    ...(interval !== team.interval ? { interval } : {}),
    ...(review !== team.review ? { review } : {}),
    ...(hours.trim() !== team.quiet_hours ? { quiet_hours: hours.trim() } : {}),
    ...(zone.trim() !== team.quiet_zone ? { quiet_zone: zone.trim() } : {}),
    ...(channel !== team.channel ? { channel } : {}),
    ...(trust !== team.trust ? { trust } : {}),
    ...(linesOf(folders).join("\n") !== givenFolders ? { folders: linesOf(folders) } : {}),
    ...(effort !== team.effort ? { effort: effort ?? ("default" as const) } : {}),
  };
  const isUnconfirmed = trust === "open" && team.trust !== "open" && typedName.trim() !== team.name;
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setIsSending(true);
    setProblem("");
    try {
      if (Object.keys(changes).length > 0) await unwrap(api.PATCH("/api/teams/{team}", { params: { path: { team: team.id } }, body: changes }));
      if (goal.trim())
        await unwrap(
          api.POST("/api/teams/{team}/goal", { params: { path: { team: team.id }, header: { "idempotency-key": idempotencyKey.current } }, body: { goal: goal.trim(), acceptance: mode === "finite" ? linesOf(acceptance) : [] } }),
        );
      await queryClient.invalidateQueries({ queryKey: queryKeys.teams });
      onClose();
    } catch (error) {
      idempotencyKey.current = randomId();
      setProblem(errorMessage(error));
    } finally {
      setIsSending(false);
    }
  };
  return (
    <Dialog open onOpenChange={onClose} title={`Settings of ${team.name}`} description="Changes apply from the team's next step on.">
      <form onSubmit={(event) => void save(event)} className="flex flex-col gap-4 text-sm font-medium">
        <div className="flex flex-col gap-2">
          <ModePills value={mode} onChange={setMode} />
          <p className="font-normal text-ink-2">{MODE_NOTES[mode]}</p>
        </div>
        <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
          <IntervalField value={interval} onChange={setRestInterval} />
          <ReviewField value={review} onChange={setReview} />
          <label className="flex flex-col gap-1">
            Name
            <Input value={name} onChange={(event) => setName(event.target.value)} placeholder="Derived from the goal" className="font-normal" maxLength={200} />
          </label>
          <EffortField value={effort} onChange={setEffort} />
          <ReachFields {...{ hours, zone, channel }} channels={me.data?.channels ?? []} onHours={setHours} onZone={setZone} onChannel={setChannel} />
        </div>
        <TrustField value={trust} onChange={setTrust} name={team.name} typed={typedName} onType={setTypedName} />
        <Grants team={team.id} />
        <FoldersField value={folders} onChange={setFolders} />
        <FolderChanges team={team.id} />
        <ModelField label="Model of the coordinator" value={model} onChange={setModel} />
        <label className="flex flex-col gap-1">
          New goal
          <Textarea rows={3} value={goal} onChange={(event) => setGoal(event.target.value)} placeholder="Leave empty to keep the goal. Open work on the old goal is cancelled; what the team knows stays." className="font-normal" />
        </label>
        {mode === "finite" && goal.trim() && <AcceptanceField value={acceptance} onChange={setAcceptance} />}
        {problem && (
          <p role="alert" className="font-normal text-fail">
            {problem}
          </p>
        )}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" type="submit" disabled={isSending || isUnconfirmed || (Object.keys(changes).length === 0 && !goal.trim())}>
            {isSending ? "Saving…" : "Save"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
