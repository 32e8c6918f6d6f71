/** Permissions: the team's trust, its folders, what was allowed for good, and its permission rules. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Undo2 } from "lucide-react";
import { useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { capitalize, fullTime, linesOf, plural, shortTime } from "@/lib/format";
import { GRANT_TEXT } from "@/lib/grantText";
import { Literal, LongText } from "@/reading/Literal";
import { Button, Problem } from "@/ui";
import { Rules } from "@/views/settings/Rules";
import { Section, SectionForm } from "@/views/settings/Section";
import { type TeamSettings, useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { FoldersField, TrustField } from "@/parts/teamFields";

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

const KINDS: Record<Schemas["FolderChangeView"]["kind"], string> = { made: "Made", changed: "Changed", removed: "Removed" };
const NEWEST = 50;

/** What agents changed in the folders that a person gave to a team, newest first, with a way to undo it. */
function FolderChanges({ team }: { team: string }) {
  const changes = useQuery({ queryKey: queryKeys.folderChanges(team), queryFn: () => unwrap(api.GET("/api/teams/{team}/changes", { params: { path: { team }, query: { limit: NEWEST } } })) });
  const undo = useMutation({
    mutationFn: (paths: string[]) => unwrap(api.POST("/api/teams/{team}/undo", { params: { path: { team } }, body: { paths, force: false } })),
    onSettled: () => queryClient.invalidateQueries({ queryKey: queryKeys.folderChanges(team) }),
  });
  const found = changes.data ?? [];
  const problem = changes.error ?? undo.error;
  if (found.length === 0 && !problem) return null;
  return (
    <section aria-label="Changes in its folders" className="font-normal">
      <h3 className="font-medium">Changes in its folders</h3>
      <ul className="scroll max-h-60 divide-y divide-line" tabIndex={-1}>
        {found.map((change) => (
          <li key={change.id} className="flex items-center gap-3 py-1.5 text-sm">
            <span id={`change-${change.id}`} dir="ltr" className="min-w-0 flex-1 literal">
              {KINDS[change.kind]} <code className="text-xs"><Literal text={change.path} /></code>
              <time className="ml-2 text-xs text-ink-3" dateTime={change.created_at} title={fullTime(change.created_at)}>
                {shortTime(change.created_at)}
              </time>
            </span>
            {change.node_id === null || change.undone_at ? (
              <span className="text-xs text-ink-3">{change.node_id === null ? "by you" : "undone"}</span>
            ) : !change.is_kept ? (
              <span className="text-xs text-ink-3">no copy is kept</span>
            ) : (
              <Button size="sm" disabled={undo.isPending} aria-describedby={`change-${change.id}`} title="Puts the file back as it was before agents changed it" onClick={() => undo.mutate([change.path])}>
                <Undo2 className="size-3.5" aria-hidden /> Undo
              </Button>
            )}
          </li>
        ))}
      </ul>
      {undo.data && <p role="status" className="text-xs text-ink-2">{undoneText(undo.data)}</p>}
      <Problem of={problem} className="text-xs" />
    </section>
  );
}

/** Return what an undo did, and what it left as it is and why. */
function undoneText({ restored, changed_since, not_kept }: Schemas["UndoneView"]): string {
  return [
    restored.length > 0 && `${plural(restored.length, "file")} put back.`,
    changed_since.length > 0 && `Left as it is, because somebody else has changed it since: ${changed_since.join(", ")}.`,
    not_kept.length > 0 && `Left as it is, because there is no copy: ${not_kept.join(", ")}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

/** What the person has allowed a team for longer than one call, with a way to take it back. */
function Grants({ team }: { team: string }) {
  const grants = useQuery({ queryKey: queryKeys.grants(team), queryFn: () => unwrap(api.GET("/api/teams/{team}/grants", { params: { path: { team } } })) });
  const revoke = useMutation({
    mutationFn: (grant: string) => unwrap(api.DELETE("/api/teams/{team}/grants/{grant}", { params: { path: { team, grant } } })),
    onSettled: () => queryClient.invalidateQueries({ queryKey: queryKeys.grants(team) }),
  });
  const inForce = grants.data?.filter((grant) => grant.is_in_force) ?? [];
  const problem = grants.error ?? revoke.error;
  if (inForce.length === 0 && !problem) return null;
  return (
    <section aria-label="Allowed without asking">
      <h3>Allowed without asking</h3>
      <ul className="divide-y divide-line font-normal">
        {inForce.map((grant) => (
          <li key={grant.id} className="flex items-center gap-3 py-2">
            <div className="min-w-0 flex-1 text-sm">
              <div id={`grant-${grant.id}`}>
                <Allowed grant={grant} />
              </div>
              <span className="block text-xs text-ink-3">
                {grant.team_id ? "This team" : "All teams"}, since {shortTime(grant.created_at)}, {grant.used === 0 ? "never used" : `used ${plural(grant.used, "time")}`}
                {grant.until && `, until ${shortTime(grant.until)}`}
              </span>
            </div>
            <Button size="sm" disabled={revoke.isPending} aria-describedby={`grant-${grant.id}`} onClick={() => revoke.mutate(grant.id)}>
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      <Problem of={problem} className="text-xs font-normal" />
    </section>
  );
}

/** A pattern longer than this stands below the words of its grant. */
const INLINE_CHARACTERS = 80;

/** What a grant allows. A grant for one exact call is named by the request that it came from: its pattern is a hash. */
function Allowed({ grant }: { grant: Schemas["GrantView"] }) {
  if (grant.pattern.length > INLINE_CHARACTERS && grant.kind !== "call")
    return (
      <>
        {capitalize(GRANT_TEXT[grant.kind])}
        <LongText text={grant.pattern} label="What it names" isCode />
      </>
    );
  if (grant.kind !== "call")
    return (
      <>
        {capitalize(GRANT_TEXT[grant.kind])}{" "}
        <code dir="ltr" className="literal text-xs">
          <Literal text={grant.pattern} />
        </code>
      </>
    );
  return (
    <>
      {grant.uses_left === null ? "Make one exact call any number of times" : "Make one exact call once"}
      {grant.from_ask && (
        <>
          {": "}
          <Link to="/inbox/$item" params={{ item: grant.from_ask }} className="underline">
            the request
          </Link>
        </>
      )}
    </>
  );
}
