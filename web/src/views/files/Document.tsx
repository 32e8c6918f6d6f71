/** Document: a file with its preview; one that a person may change also has an editor and a history. */
import { History, Pencil } from "lucide-react";
import { Suspense, useRef, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { Button, IconButton, Loading } from "@/ui";
import { isEditable } from "@/views/files/documents";
import { readDraft } from "@/views/files/drafts";
import type { FileContent } from "@/views/files/fileQuery";
import { asTyped } from "@/views/files/lineEnds";
import { Preview } from "@/views/files/Preview";
import { useSearchParams } from "@/parts/useSearchParams";

const Editor = lazyChunk(() => import("@/views/files/Editor"));
const Versions = lazyChunk(() => import("@/views/files/Versions"));

export type DocumentMode = "read" | "edit" | "history";
type File = Exclude<FileContent, { kind: "folder" }>;

/** The mode in which a file is shown; another file is read first. An address with `?view=history` opens the history. */
export function useDocumentMode(path: string): [DocumentMode, (mode: DocumentMode) => void] {
  const [{ view }] = useSearchParams();
  const [mode, setMode] = useState<DocumentMode>(view === "history" ? "history" : "read");
  const [shown, setShown] = useState(path);
  if (shown !== path) {
    setShown(path);
    setMode("read");
  }
  return [shown === path ? mode : "read", setMode];
}

const hasHistory = (file: FileContent | undefined) => file?.kind === "text" && !file.isTruncated && isEditable(file.path);
/** A text that was decoded with a loss cannot be saved: it would overwrite the bytes that are not UTF-8. */
const canChange = (file: FileContent | undefined) => hasHistory(file) && file?.kind === "text" && !file.isLossy;

/** Whether the person has changed this text before and not saved it. */
function hasUnsaved(team: string, file: File): boolean {
  if (file.kind !== "text" || !canChange(file)) return false;
  const draft = readDraft(team, file.path);
  return draft !== null && asTyped(draft.text) !== asTyped(file.text);
}

export function DocumentActions({ file, mode, onMode }: { file: FileContent | undefined; mode: DocumentMode; onMode: (mode: DocumentMode) => void }) {
  if (!hasHistory(file)) return null;
  return (
    <>
      {canChange(file) && (
        <IconButton label="Edit" data-mode="edit" aria-pressed={mode === "edit"} onClick={() => onMode(mode === "edit" ? "read" : "edit")}>
          <Pencil className="size-4" />
        </IconButton>
      )}
      <IconButton label="History" data-mode="history" aria-pressed={mode === "history"} onClick={() => onMode(mode === "history" ? "read" : "history")}>
        <History className="size-4" />
      </IconButton>
    </>
  );
}

export function Document({ team, file, href, mode, onMode }: { team: string; file: File; href: string; mode: DocumentMode; onMode: (mode: DocumentMode) => void }) {
  const frame = useRef<HTMLDivElement>(null);
  if (file.kind !== "text" || mode === "read" || !(mode === "edit" ? canChange : hasHistory)(file)) {
    const preview = <Preview file={file} href={href} />;
    if (!hasUnsaved(team, file)) return preview;
    return (
      <div className="flex h-full flex-col">
        <p role="status" className="mx-4 mt-3 flex shrink-0 flex-wrap items-center justify-between gap-2 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">
          What you wrote here is kept, but not saved.
          <Button size="sm" onClick={() => onMode("edit")}>
            Go on editing
          </Button>
        </p>
        <div className="min-h-0 flex-1">{preview}</div>
      </div>
    );
  }
  const onDone = () => {
    onMode("read");
    // Back to the button that opened it, unless the person went elsewhere while the text was saved.
    const { activeElement } = document;
    if (activeElement === document.body || frame.current?.contains(activeElement)) document.querySelector<HTMLElement>(`[data-mode="${mode}"]`)?.focus();
  };
  return (
    <div ref={frame} className="contents">
      <Suspense fallback={<Loading label={mode === "edit" ? "Opening the editor" : "Loading the history"} />}>
        {mode === "edit" ? <Editor key={file.path} team={team} file={file} onDone={onDone} /> : <Versions key={file.path} team={team} file={file} onDone={onDone} />}
      </Suspense>
    </div>
  );
}
