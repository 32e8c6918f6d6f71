/** OwnTools: own tools and skills, whether they are on, and their content in full before they are enabled. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { Suspense, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { lazyChunk } from "@/live/chunks";
import { Consent, Empty, Loaded, Problem, Section } from "@/views/operations/parts";
import { ReadGate } from "@/reading/ReadGate";
import { TextChange } from "@/views/operations/TextChange";
import { extensionsQuery, skillsQuery } from "@/parts/serverQueries";
import { Button, Chip, Dialog, ErrorPanel, Loading, type Tone } from "@/ui";

const AddOwnTool = lazyChunk(() => import("@/views/operations/AddOwnTool"));

type Own = Pick<Schemas["ExtensionView"], "id" | "sha256" | "state" | "summary" | "problem"> & { isSkill: boolean };
const STATES: Record<Own["state"], [Tone, string]> = { off: ["plain", "Off"], on: ["done", "On"], changed: ["wait", "Changed"], faulty: ["fail", "Faulty"] };

export function OwnTools() {
  const extensions = useQuery(extensionsQuery);
  const skills = useQuery(skillsQuery);
  const [isAdding, setIsAdding] = useState(false);
  const [added, setAdded] = useState<string | null>(null);
  return (
    <Section
      title="Own tools and skills"
      description="No code runs and no skill is used until you have enabled exactly this content."
      action={
        <Button onClick={() => setIsAdding(true)}>
          <Plus className="size-4" aria-hidden /> Add an own tool
        </Button>
      }
    >
      <Loaded query={extensions} what="own tools">
        {(tools) => (
          <Loaded query={skills} what="skills">
            {(folders) => <List all={[...tools.map((one) => ({ ...one, isSkill: false })), ...folders.map((one) => ({ ...one, isSkill: true }))]} />}
          </Loaded>
        )}
      </Loaded>
      {isAdding && (
        <Suspense>
          <AddOwnTool
            onClose={() => setIsAdding(false)}
            onAdded={(id) => {
              setIsAdding(false);
              setAdded(id);
              void queryClient.invalidateQueries({ queryKey: extensionsQuery.queryKey });
            }}
          />
        </Suspense>
      )}
      {added !== null && <EnableDialog item={{ id: added, sha256: "", isSkill: false }} onClose={() => setAdded(null)} />}
    </Section>
  );
}

function List({ all }: { all: Own[] }) {
  if (all.length === 0)
    return (
      <Empty>
        None. A Python function becomes a tool of your agents. You can also put files into the folder <code>tools</code> of the home, or a folder with a SKILL.md into <code>skills</code>.
      </Empty>
    );
  return (
    <ul className="divide-y divide-line">
      {all.map((one) => (
        <Item key={one.id} item={one} />
      ))}
    </ul>
  );
}

function useChange({ id, isSkill }: Pick<Own, "id" | "isSkill">) {
  return useMutation({
    mutationFn: async (sha256: string | null): Promise<void> => {
      if (sha256 === null) await (isSkill ? unwrap(api.POST("/api/skills/disable", { body: { id } })) : unwrap(api.POST("/api/extensions/disable", { body: { id } })));
      else await (isSkill ? unwrap(api.POST("/api/skills/enable", { body: { id, sha256 } })) : unwrap(api.POST("/api/extensions/enable", { body: { id, sha256 } })));
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: (isSkill ? skillsQuery : extensionsQuery).queryKey }),
  });
}

function Item({ item }: { item: Own }) {
  const [isAsking, setIsAsking] = useState(false);
  const disable = useChange(item);
  const [tone, label] = STATES[item.state];
  const isOn = item.state === "on" || item.state === "faulty";
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <span dir="ltr" className="font-mono text-xs break-all">
        {item.id}
      </span>
      <Chip tone={tone}>{label}</Chip>
      <span dir="auto" className="min-w-0 flex-1 basis-60 text-xs break-words text-ink-2">
        {capitalize(item.problem) || item.summary}
      </span>
      {isOn ? (
        <Button size="sm" disabled={disable.isPending} onClick={() => disable.mutate(null)}>
          Disable
        </Button>
      ) : (
        <Button size="sm" variant={item.state === "changed" ? "primary" : "outline"} onClick={() => setIsAsking(true)}>
          {item.state === "changed" ? "Review" : "Enable"}
        </Button>
      )}
      <Problem error={disable.error} />
      {isAsking && <EnableDialog item={item} onClose={() => setIsAsking(false)} />}
    </li>
  );
}

const fetchContent = (id: string, isSkill: boolean) => (isSkill ? unwrap(api.GET("/api/skills/content", { params: { query: { id } } })) : unwrap(api.GET("/api/extensions/content", { params: { query: { id } } })));

function EnableDialog({ item, onClose }: { item: Pick<Own, "id" | "sha256" | "isSkill">; onClose: () => void }) {
  const { id, isSkill } = item;
  const content = useQuery({ queryKey: ["own content", id] as const, queryFn: () => fetchContent(id, isSkill), staleTime: 0, gcTime: 0, enabled: !id.startsWith("package:") });
  const enable = useChange(item);
  const sha256 = id.startsWith("package:") ? item.sha256 : content.data?.sha256;
  const isCompared = content.data?.files.some((file) => file.before !== null) ?? false;
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} className="w-[min(820px,calc(100vw-24px))]" title={`Enable ${id}?`} description={content.data?.consent}>
      <ReadGate>
        <div className="space-y-3 pb-4">
          {id.startsWith("package:") ? (
            <p className="text-sm">It is a package with many files: read its source where it is made. Its code then runs inside of the runtime, with all that your user may do.</p>
          ) : content.isPending ? (
            <Loading label="Reading the content" />
          ) : content.isError ? (
            <ErrorPanel title="The content could not be read" detail={errorMessage(content.error)} onRetry={() => void content.refetch()} />
          ) : (
            content.data.files.map((file) => (
              <section key={file.path} aria-label={file.path}>
                <h3 dir="ltr" className="mb-1 font-mono text-xs break-all">
                  {file.path}
                  {file.now === null && " (removed)"}
                </h3>
                <TextChange label={`Content of ${file.path}`} before={isCompared ? (file.before ?? "") : null} now={file.now ?? ""} />
              </section>
            ))
          )}
          {sha256 && (
            <p dir="ltr" className="font-mono text-2xs break-all text-ink-3">
              sha256 {sha256}
            </p>
          )}
          <Problem error={enable.error} />
        </div>
        <Consent question="Enable exactly this content?" agree={enable.isPending ? "Enabling…" : "Enable this content"} canAgree={!!sha256 && !enable.isPending} onAgree={() => enable.mutate(sha256!, { onSuccess: onClose })} onRefuse={onClose} />
      </ReadGate>
    </Dialog>
  );
}
