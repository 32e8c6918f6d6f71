/** Versions: what a text held before, what has changed since, and a way to bring it back. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { errorMessage } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, fileSize, fullTime } from "@/lib/format";
import { HUMAN } from "@/lib/participants";
import { Button, Chip, EmptyState, ErrorPanel, Loading } from "@/ui";
import { DiffView } from "@/views/files/DiffView";
import { restoreVersion, type Version, versionQuery, versionsQuery } from "@/views/files/documents";
import type { FileContent } from "@/views/files/fileQuery";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { showError, showToast } from "@/parts/toast";

type TextFile = Extract<FileContent, { kind: "text" }>;

/** The author of the character that a team gets if a person writes none. */
const AGIRAPH = "agiraph";

function authorOf({ author }: Version): string {
  if (author === HUMAN) return "You";
  if (author === AGIRAPH) return AGIRAPH;
  return author === "" ? "Unknown author" : capitalize(author);
}

export default function Versions({ team, file, onDone }: { team: string; file: TextFile; onDone: () => void }) {
  const versions = useQuery(versionsQuery(team, file.path));
  const [chosen, setChosen] = useState<string | null>(null);
  // The age of a new version is told in seconds.
  const now = useNow(versions.data?.some(({ at }) => Date.now() - Date.parse(at) < 60_000) ? 1_000 : 60_000);
  if (versions.isPending) return <Loading label="Loading the history" />;
  if (versions.isError) return <ErrorPanel title="The history could not be loaded" detail={errorMessage(versions.error)} onRetry={() => void versions.refetch()} />;
  if (versions.data.length === 0) {
    return (
      <EmptyState title="No earlier versions yet" action={<Button onClick={onDone}>Back to the text</Button>}>
        From its next change on, every version of this text is kept.
      </EmptyState>
    );
  }
  const shown = versions.data.find(({ id }) => id === chosen) ?? versions.data[0]!;
  return (
    <div className="flex h-full min-h-0 max-lg:flex-col">
      <ol aria-label="Versions" className="scroll w-64 shrink-0 border-r border-line p-2 max-lg:max-h-44 max-lg:w-full max-lg:border-r-0 max-lg:border-b">
        {versions.data.map((version) => (
          <li key={version.id}>
            <button
              type="button"
              aria-pressed={version.id === shown.id}
              title={fullTime(version.at)}
              onClick={() => setChosen(version.id)}
              className={cx("flex min-h-11 w-full flex-col items-start justify-center rounded-sm px-2.5 py-1 text-left text-sm", version.id === shown.id ? "bg-press font-medium" : "hover:bg-hover")}
            >
              <span dir="auto">{authorOf(version)}</span>
              <span className="text-xs font-normal text-ink-3">
                <RelativeTime at={version.at} now={now} /> · {fileSize(version.size)} {version.is_labelled && <Chip>Untrusted text</Chip>}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <Compared key={shown.id} team={team} file={file} version={shown} onDone={onDone} />
    </div>
  );
}

function Compared({ team, file, version, onDone }: { team: string; file: TextFile; version: Version; onDone: () => void }) {
  const old = useQuery(versionQuery(team, file.path, version.id));
  const restore = useMutation({
    mutationFn: () => restoreVersion(team, file.path, version.id, file.hash),
    onSuccess: () => {
      showToast("The earlier version is back. What stood here before is kept in the history.");
      onDone();
    },
    onError: (error) => showError("The version could not be restored", error),
  });
  if (old.isPending) return <Loading label="Opening the version" />;
  if (old.isError) return <ErrorPanel title="The version could not be opened" detail={errorMessage(old.error)} onRetry={() => void old.refetch()} />;
  const text = old.data?.text;
  const isCurrent = text === file.text && old.data?.bom === file.bom && !file.isLossy && !old.data.isLossy;
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 px-4 pt-3 text-sm">
        <p className="min-w-0 flex-1 max-md:basis-full">{isCurrent ? "This is the text as it is now." : "What has changed since this version:"}</p>
        <Button onClick={onDone}>Back to the text</Button>
        {!isCurrent && (
          <Button variant="primary" disabled={restore.isPending} onClick={() => restore.mutate()}>
            Restore this version
          </Button>
        )}
      </div>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {isCurrent ? <pre dir="auto" tabIndex={0} role="region" aria-label="The text as it is now" className="p-4 outline-offset-[-2px] font-mono text-xs leading-[19px] break-words whitespace-pre-wrap">{text}</pre> : text === undefined ? <p className="p-4 text-sm text-ink-2">This version is not text, so its lines cannot be compared.</p> : <DiffView before={text} after={file.text} label="Changes since this version" />}
      </div>
    </div>
  );
}
