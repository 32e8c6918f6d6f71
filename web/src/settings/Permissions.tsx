/** Permissions: the team's trust, its folders, what was allowed for good, and its permission rules. */
import { useState } from "react";
import { FolderChanges } from "@/conversation/FolderChanges";
import { Grants } from "@/conversation/Grants";
import { Rules } from "@/settings/Rules";
import { Section, SectionForm } from "@/settings/Section";
import { type TeamSettings, useSave } from "@/settings/settingsQuery";
import { useEdits } from "@/settings/useEdits";
import { FoldersField, linesOf, TrustField } from "@/shell/teamFields";

export function Permissions({ settings }: { settings: TeamSettings }) {
  const { team } = settings;
  const save = useSave(team.id);
  const [typed, setTyped] = useState("");
  const given = team.folders.map((folder) => `${folder.path}:${folder.access}`).join("\n");
  const form = useEdits({ trust: team.trust, folders: given }, `permissions.${team.id}`, ({ trust, folders }) => ({ trust, folders: linesOf(folders).join("\n") }));
  const { trust, folders } = form.values;
  const { folders: listed, ...changes } = form.changes;
  const isUnconfirmed = trust === "open" && team.trust !== "open" && typed.trim() !== team.name;
  return (
    <Section id="permissions" title="Permissions" about="What the team may do by itself, and what it asks you about.">
      <SectionForm save={save} isChanged={form.isChanged && !isUnconfirmed} edits={form} onSave={() => save.mutate({ ...changes, ...(listed === undefined ? {} : { folders: linesOf(listed) }) }, { onSuccess: form.forget })}>
        <TrustField value={trust} onChange={(trust) => form.set({ trust })} name={team.name} typed={typed} onType={setTyped} />
        <FoldersField value={folders} onChange={(folders) => form.set({ folders })} />
      </SectionForm>
      <FolderChanges team={team.id} />
      <div className="font-medium">
        <Grants team={team.id} />
      </div>
      <Rules team={team.id} saved={settings.permissions} />
    </Section>
  );
}
