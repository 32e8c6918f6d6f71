/** AddKnowledge: the dialog that gives an agent a memory about the person, or an insight for its work. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { type Agent, api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { invalidateKnowledge } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { useStoredDraft } from "@/lib/storedDraft";
import { Button, Dialog, Pills, Textarea } from "@/ui";
import { showToast } from "@/parts/toast";

type InsightType = Schemas["NewInsight"]["type"];
const TYPES: [InsightType, string][] = [["fact", "Fact"], ["technique", "Technique"], ["pattern", "Pattern"], ["lesson", "Lesson"]];
const HINTS: Record<InsightType, string> = {
  fact: "Something that is true: “Our invoices are due after 14 days.”",
  technique: "A way to do something: “Check prices on the vendor's page before a marketplace.”",
  pattern: "What tends to happen: “Reports from the lab arrive late in the month.”",
  lesson: "What to do differently: “Ask before changing a published table.”",
};

export function AddKnowledge({ kind, members, agentFilter, onClose }: { kind: "insight" | "memory"; members: Agent[]; agentFilter: string; onClose: () => void }) {
  const [agent, setAgent] = useState(members.some((one) => one.id === agentFilter) ? agentFilter : (members[0]?.id ?? ""));
  const [type, setType] = useState<InsightType>("fact");
  const [content, setContent] = useStoredDraft(`${kind}.${members[0]?.team_id ?? ""}`);
  const id = useId();
  const name = capitalize(members.find((one) => one.id === agent)?.name ?? "the agent");
  const add = useMutation({
    mutationFn: async (): Promise<void> => {
      const path = { agent };
      if (kind === "insight") await unwrap(api.POST("/api/agents/{agent}/insights", { params: { path }, body: { type, content: content.trim() } }));
      else await unwrap(api.POST("/api/agents/{agent}/memories", { params: { path }, body: { content: content.trim() } }));
    },
    onSuccess: () => {
      setContent("");
      invalidateKnowledge();
      showToast(`${name} knows it now.`);
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (content.trim()) add.mutate();
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => open || onClose()}
      title={kind === "insight" ? "Add an insight" : "Add a memory about you"}
      description={kind === "insight" ? "The agent sees it in all its work." : "The agent sees it whenever it talks to you."}
    >
      <form onSubmit={submit} className="space-y-4">
        <div>
          <label htmlFor={`${id}a`} className="mb-1 block text-sm font-medium">
            Agent
          </label>
          <select id={`${id}a`} value={agent} onChange={(event) => setAgent(event.target.value)} className="h-9 w-full rounded-sm border border-control bg-surface px-2 text-sm pointer-coarse:h-11">
            {members.map((one) => (
              <option key={one.id} value={one.id}>
                {capitalize(one.name)}
              </option>
            ))}
          </select>
        </div>
        {kind === "insight" && <Pills label="What kind" value={type} onChange={setType} options={TYPES} />}
        <div>
          <label htmlFor={`${id}c`} className="mb-1 block text-sm font-medium">
            Text
          </label>
          <Textarea id={`${id}c`} aria-describedby={`${id}h`} rows={4} autoFocus value={content} onChange={(event) => setContent(event.target.value)} />
          <p id={`${id}h`} className="mt-1 text-xs text-ink-3">
            {kind === "insight" ? HINTS[type] : "For example how you like reports, what to call you, when not to disturb you."}
          </p>
        </div>
        {add.isError && (
          <p role="alert" className="rounded-sm bg-fail-bg px-3 py-2 text-sm text-fail">
            {errorMessage(add.error)}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" variant="primary" disabled={!content.trim() || add.isPending}>
            {add.isPending ? "Adding…" : "Add"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
