/** Skills: instructions that agents follow for a kind of work: list, enable, read and change them. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, type Team, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { OUTDATED_EDIT, useStoredEdit } from "@/lib/storedDraft";
import { Editor } from "@/views/settings/Editor";
import { Section } from "@/views/settings/Section";
import { Button, Chip, Dialog, DialogActions, Input, Loading, Problem, type Tone } from "@/ui";
import { showToast } from "@/parts/toast";

type Skill = Schemas["SkillView"];
const KEY = ["skills"] as const;
const STATES: Record<Skill["state"], { label: string; tone: Tone }> = { on: { label: "On", tone: "done" }, off: { label: "Off", tone: "plain" }, changed: { label: "Changed, off", tone: "wait" }, faulty: { label: "Faulty", tone: "fail" } };
const NEW_FILE = (name: string) => `---
name: ${name}
description: When it is to be used, in a sentence: agents choose by it.
---
How you want this kind of work done.
`;

/** Whether the team can use a skill: it is the home's, the team's own, or one of a folder that it was given. */
function isOfTeam(skill: Skill, team: Team): boolean {
  if (skill.id.startsWith("teams/")) return skill.id.startsWith(`teams/${team.id}/`);
  return !skill.id.startsWith("/") || team.folders.some((folder) => skill.id.startsWith(`${folder.path}/`));
}

export function Skills({ team }: { team: Team }) {
  const skills = useQuery({ queryKey: KEY, queryFn: () => unwrap(api.GET("/api/skills")) });
  const found = skills.data?.filter((skill) => isOfTeam(skill, team));
  const [opened, setOpened] = useState<string | null>(null);
  const [name, setName] = useState("");
  const isFree = /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name) && !skills.data?.some((one) => one.id === `skills/${name}`);
  return (
    <Section id="skills" title="Skills" about="How you want a kind of work done. Members see the name and description of each skill that is on, and read it before such work. A changed skill is off until you turn it on again.">
      {skills.isPending && <Loading label="Loading the skills" className="p-0" />}
      <Problem of={skills.error} className="text-sm font-normal" />
      {found?.length === 0 && <p className="text-ink-2">There are no skills yet.</p>}
      {found && found.length > 0 && (
        <ul aria-label="Skills" className="divide-y divide-line rounded-md border border-line">
          {found.map((skill) => (
            <SkillRow key={skill.id} skill={skill} onOpen={() => setOpened(skill.id)} />
          ))}
        </ul>
      )}
      <form
        className="flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          if (isFree) setOpened(`skills/${name}`);
        }}
      >
        <label className="flex flex-col gap-1 font-medium">
          New skill
          <Input value={name} onChange={(event) => setName(event.target.value.toLowerCase())} placeholder="A name, such as letters" className="w-64 font-normal" maxLength={64} autoComplete="off" spellCheck={false} />
        </label>
        <Button type="submit" disabled={!isFree} className="h-9">
          Write it
        </Button>
      </form>
      {opened && <SkillDialog key={opened} id={opened} isNew={!skills.data?.some((one) => one.id === opened)} onClose={() => setOpened(null)} />}
    </Section>
  );
}

function SkillRow({ skill, onOpen }: { skill: Skill; onOpen: () => void }) {
  const { label, tone } = STATES[skill.state];
  const turn = useMutation({
    mutationFn: async () => {
      if (skill.state === "on") await unwrap(api.POST("/api/skills/disable", { body: { id: skill.id } }));
      else await unwrap(api.POST("/api/skills/enable", { body: { id: skill.id, sha256: skill.sha256 } }));
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: KEY }),
  });
  const shown = skill.name || skill.id;
  return (
    <li className="px-3 py-2.5">
      <div className="flex flex-wrap items-start gap-x-3 gap-y-1.5">
        <div className="min-w-0 flex-1 basis-64">
          <span className="font-medium" dir="auto">
            {shown}
          </span>{" "}
          <Chip tone={tone} className="ml-1">
            {label}
          </Chip>
          <p dir="auto" className="break-words text-ink-2">
            {skill.summary}
          </p>
          <p dir="ltr" className="truncate text-xs text-ink-3">
            {skill.id}
          </p>
        </div>
        <span className="flex gap-1.5">
          <Button size="sm" aria-label={`Read or edit ${shown}`} onClick={onOpen}>
            Read or edit
          </Button>
          {skill.sha256 && (
            <Button size="sm" aria-label={`Turn ${shown} ${skill.state === "on" ? "off" : "on"}`} disabled={turn.isPending} onClick={() => turn.mutate()}>
              Turn {skill.state === "on" ? "off" : "on"}
            </Button>
          )}
        </span>
      </div>
      <Problem of={turn.error} className="text-sm font-normal" />
    </li>
  );
}

function SkillDialog({ id, isNew, onClose }: { id: string; isNew: boolean; onClose: () => void }) {
  const file = useQuery({ queryKey: [...KEY, id], queryFn: () => unwrap(api.GET("/api/skills/file", { params: { query: { id } } })), enabled: !isNew });
  const name = id.split("/").at(-1)!;
  return (
    <Dialog open onOpenChange={onClose} title={isNew ? `New skill ${name}` : `Skill ${name}`} description="Its SKILL.md. Between the two lines of --- stand its settings, below them what agents read." className="w-[min(820px,calc(100vw-24px))]">
      {isNew ? (
        <SkillForm id={id} saved="" first={NEW_FILE(name)} shown="" files={[]} canEdit onClose={onClose} />
      ) : file.data ? (
        <SkillForm id={id} saved={file.data.text} first={file.data.text} shown={file.data.shown} files={file.data.files} canEdit={file.data.can_edit} onClose={onClose} />
      ) : file.isError ? (
        <Problem of={file.error} className="text-sm font-normal" />
      ) : (
        <Loading label="Loading the file" />
      )}
    </Dialog>
  );
}

function SkillForm({ id, saved, first, shown, files, canEdit, onClose }: { id: string; saved: string; first: string; shown: string; files: readonly string[]; canEdit: boolean; onClose: () => void }) {
  const [text, setText, isOutdated] = useStoredEdit(`skill.${id}`, first);
  const close = () => {
    setText(first);
    onClose();
  };
  const save = useMutation({
    mutationFn: () => unwrap(api.PUT("/api/skills/file", { body: { id, text } })),
    onSuccess: (skill) => {
      void queryClient.invalidateQueries({ queryKey: KEY });
      showToast(`${skill.name} is saved. Turn it on to use it.`);
      close();
    },
  });
  return (
    <div className="flex flex-col gap-4 text-sm">
      {shown && (
        <p className="text-ink-2">
          In their prompts agents see only this line, and read the rest when they need it: <span dir="auto">“{shown.replace(/^- /, "")}”</span>
        </p>
      )}
      <Editor label={`SKILL.md of ${id}`} value={text} first={first} onChange={setText} isReadOnly={!canEdit} />
      {files.length > 0 && <p className="break-words text-ink-2">Further files: {files.join(", ")}</p>}
      {!canEdit && <p className="text-ink-2">This skill lies in a folder of yours. Change the file there.</p>}
      {isOutdated && text !== first && <p role="status">{OUTDATED_EDIT}</p>}
      <Problem of={save.error} className="text-sm font-normal" />
      <DialogActions>
        <Button onClick={close}>{text !== first ? "Discard" : canEdit ? "Cancel" : "Close"}</Button>
        {canEdit && (
          <Button variant="primary" disabled={save.isPending || text === saved} onClick={() => save.mutate()}>
            {save.isPending ? "Saving…" : "Save"}
          </Button>
        )}
      </DialogActions>
    </div>
  );
}
