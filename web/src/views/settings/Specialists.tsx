/** Specialists: the kinds of agents that coordinators can hire, their files, and a dry run of one. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, type Team, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { compactNumber, plural } from "@/lib/format";
import { OUTDATED_EDIT, useStoredEdit } from "@/lib/storedDraft";
import { Editor } from "@/views/settings/Editor";
import { Section } from "@/views/settings/Section";
import { Button, Chip, Dialog, DialogActions, Input, Loading, Problem, Textarea } from "@/ui";
import { showToast } from "@/parts/toast";

type Specialist = Schemas["SpecialistView"];
const KEY = ["specialists"] as const;
const SOURCES: Record<Specialist["source"], string> = { built_in: "Built in", home: "Yours", replaced: "Yours, instead of the built-in one" };
const NEW_FILE = (name: string) => `---
name: ${name}
description: What it is for, in a sentence: coordinators choose by it.
# tools: [read_file, write_file]   # without this line: all tools of a worker
---
You are …
`;

export function Specialists({ team }: { team: Team }) {
  const specialists = useQuery({ queryKey: KEY, queryFn: () => unwrap(api.GET("/api/specialists")) });
  const [opened, setOpened] = useState<{ name: string; isNew: boolean } | null>(null);
  const [name, setName] = useState("");
  const isFree = /^[a-z0-9][a-z0-9_-]{0,39}$/.test(name) && !specialists.data?.some((one) => one.name === name);
  return (
    <Section id="specialists" title="Specialists" about="Members that the coordinator hires by name for a task. All teams of this installation have the same ones. A change applies to members that are hired from then on.">
      {specialists.isPending && <Loading label="Loading the specialists" className="p-0" />}
      <Problem of={specialists.error} className="text-sm font-normal" />
      {specialists.data && (
        <ul aria-label="Specialists" className="divide-y divide-line rounded-md border border-line">
          {specialists.data.map((one) => (
            <li key={one.name} className="flex items-start gap-3 px-3 py-2.5">
              <div className="min-w-0 flex-1">
                <span dir="auto" className="font-medium">{one.name}</span> <Chip className="ml-1">{SOURCES[one.source]}</Chip>
                <p dir="auto" className="text-ink-2">
                  {one.description}
                </p>
                <p className="text-xs text-ink-3">{[one.model || "The hiring member's model", one.tools.length > 0 ? plural(one.tools.length, "tool") : "All tools of a worker"].join(" · ")}</p>
              </div>
              <Button size="sm" aria-label={`Edit or try ${one.name}`} onClick={() => setOpened({ name: one.name, isNew: false })}>
                Edit or try
              </Button>
            </li>
          ))}
        </ul>
      )}
      <form
        className="flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          if (isFree) setOpened({ name, isNew: true });
        }}
      >
        <label className="flex flex-col gap-1 font-medium">
          New specialist
          <Input value={name} onChange={(event) => setName(event.target.value.toLowerCase())} placeholder="A name, such as translator" className="w-64 font-normal" maxLength={40} autoComplete="off" spellCheck={false} />
        </label>
        <Button type="submit" disabled={!isFree} className="h-9">
          Write it
        </Button>
      </form>
      {opened && <SpecialistDialog key={opened.name} team={team} name={opened.name} isNew={opened.isNew} onClose={() => setOpened(null)} />}
    </Section>
  );
}

function SpecialistDialog({ team, name, isNew, onClose }: { team: Team; name: string; isNew: boolean; onClose: () => void }) {
  const file = useQuery({ queryKey: [...KEY, name], queryFn: () => unwrap(api.GET("/api/specialists/{name}", { params: { path: { name } } })), enabled: !isNew });
  return (
    <Dialog open onOpenChange={onClose} title={isNew ? `New specialist ${name}` : `Specialist ${name}`} description="Between the two lines of --- stand its settings, below them its prompt." className="w-[min(820px,calc(100vw-24px))]">
      {isNew ? (
        <SpecialistForm team={team} name={name} saved="" first={NEW_FILE(name)} source={null} onClose={onClose} />
      ) : file.data ? (
        <SpecialistForm team={team} name={name} saved={file.data.text} first={file.data.text} source={file.data.specialist.source} onClose={onClose} />
      ) : file.isError ? (
        <Problem of={file.error} className="text-sm font-normal" />
      ) : (
        <Loading label="Loading the file" />
      )}
    </Dialog>
  );
}

interface FormProps {
  team: Team;
  name: string;
  saved: string;
  first: string;
  source: Specialist["source"] | null;
  onClose: () => void;
}

function SpecialistForm({ team, name, saved, first, source, onClose }: FormProps) {
  const [text, setText, isOutdated] = useStoredEdit(`specialist.${name}`, first);
  const close = () => {
    setText(first);
    onClose();
  };
  const done = (said: string) => {
    void queryClient.invalidateQueries({ queryKey: KEY });
    showToast(said);
    close();
  };
  const save = useMutation({ mutationFn: (text: string) => unwrap(api.PUT("/api/specialists/{name}", { params: { path: { name } }, body: { text } })), onSuccess: () => done(`${name} is saved.`) });
  const remove = useMutation({ mutationFn: () => unwrap(api.DELETE("/api/specialists/{name}", { params: { path: { name } } })), onSuccess: () => done(source === "replaced" ? `The built-in ${name} is used again.` : `${name} is deleted.`) });
  return (
    <div className="flex flex-col gap-4 text-sm">
      <Editor label={`File of ${name}`} value={text} first={first} onChange={setText} />
      <Trial team={team} name={name} text={text === saved ? null : text} />
      {isOutdated && text !== first && <p role="status">{OUTDATED_EDIT}</p>}
      <Problem of={save.error ?? remove.error} className="text-sm font-normal" />
      <DialogActions>
        {source !== null && source !== "built_in" && (
          <Button variant="danger" className="mr-auto" disabled={remove.isPending} onClick={() => remove.mutate()}>
            {source === "replaced" ? "Use the built-in one again" : "Delete"}
          </Button>
        )}
        <Button onClick={close}>{text === first ? "Cancel" : "Discard"}</Button>
        <Button variant="primary" disabled={save.isPending || text === saved} onClick={() => save.mutate(text)}>
          {save.isPending ? "Saving…" : "Save"}
        </Button>
      </DialogActions>
    </div>
  );
}

/** Shows what the model would be shown for a task, with the file as it is in the editor. No model is called. */
function Trial({ team, name, text }: { team: Team; name: string; text: string | null }) {
  const [task, setTask] = useState("");
  const trial = useMutation({ mutationFn: () => unwrap(api.POST("/api/specialists/{name}/try", { params: { path: { name } }, body: { team: team.id, task: task.trim(), text } })) });
  return (
    <section aria-label="Try it" className="rounded-md border border-line p-3">
      <label className="flex flex-col gap-1 font-medium">
        Try it with a task
        <Textarea rows={2} value={task} onChange={(event) => setTask(event.target.value)} placeholder="What it would be asked to do" className="font-normal" dir="auto" />
      </label>
      <div className="mt-2 flex flex-wrap items-center gap-3">
        <Button disabled={!task.trim() || trial.isPending} onClick={() => trial.mutate()}>
          Show what its model would see
        </Button>
        <span className="text-xs text-ink-3">Calls no model and costs nothing.</span>
      </div>
      <Problem of={trial.error} className="text-sm font-normal" />
      {trial.data && (
        <div className="mt-3 flex flex-col gap-2">
          <p className="text-xs text-ink-2">
            About {compactNumber(trial.data.tokens)} tokens, with {plural(trial.data.tools.length, "tool")}: {trial.data.tools.join(", ")}.
          </p>
          <Shown title="System prompt" text={trial.data.system} />
          <Shown title="Task" text={trial.data.task} />
        </div>
      )}
    </section>
  );
}

const Shown = ({ title, text }: { title: string; text: string }) => (
  <div>
    <h3 dir="auto" className="text-xs font-medium">{title}</h3>
    <pre dir="auto" tabIndex={0} className="scroll mt-1 max-h-64 rounded-sm bg-sunken p-2.5 font-mono text-xs break-words whitespace-pre-wrap">
      {text}
    </pre>
  </div>
);
