/** Permissions: the team's trust, its folders, what was allowed for good, and its permission rules. */
import { useState } from "react";
import { FolderChanges } from "@/conversation/FolderChanges";
import { Grants } from "@/conversation/Grants";
import type { Trust } from "@/lib/trust";
import { Rules } from "@/settings/Rules";
import { Section, SectionForm } from "@/settings/Section";
import { type TeamChanges, type TeamSettings, useSave } from "@/settings/settingsQuery";
import { FoldersField, linesOf, TrustField } from "@/shell/teamFields";

export function Permissions({ settings }: { settings: TeamSettings }) {
  const { team } = settings;
  const save = useSave(team.id);
  const given = team.folders.map((folder) => `${folder.path}:${folder.access}`).join("\n");
  const [trust, setTrust] = useState<Trust>(team.trust);
  const [typed, setTyped] = useState("");
  const [folders, setFolders] = useState(given);
  const changes: TeamChanges = {
    ...(trust !== team.trust ? { trust } : {}),
    ...(linesOf(folders).join("\n") !== given ? { folders: linesOf(folders) } : {}),
  };
  const isUnconfirmed = trust === "open" && team.trust !== "open" && typed.trim() !== team.name;
  return (
    <Section id="permissions" title="Permissions" about="What the team may do by itself, and what it asks you about.">
      <SectionForm save={save} isChanged={Object.keys(changes).length > 0 && !isUnconfirmed} onSave={() => save.mutate(changes)}>
        <TrustField value={trust} onChange={setTrust} name={team.name} typed={typed} onType={setTyped} />
        <FoldersField value={folders} onChange={setFolders} />
      </SectionForm>
      <FolderChanges team={team.id} />
      <div className="font-medium">
        <Grants team={team.id} />
      </div>
      <Rules key={JSON.stringify(settings.permissions)} team={team.id} saved={settings.permissions} />
    </Section>
  );
}
