/** GoalFiles: the files that a person gives a team with its goal. They are kept as those of a message, until the team has them. */
import { Paperclip } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { type Attachment, pastedFiles } from "@/views/composer/attachments";
import { AttachmentList } from "@/views/composer/AttachmentList";
import { attachFiles, currentFiles, restoreFiles, useComposer } from "@/views/composer/composerState";
import { cx } from "@/lib/cx";
import { Button } from "@/ui";

/** The draft of a new team. The files of a goal are kept under the name of its draft. */
export const NEW_TEAM = "new-team";

/** The field of the goal, on which files can be dropped, and the files below it. `actions` stand at the end of the last line. */
export function GoalFiles({ draft, children, actions, className, onProblem }: { draft: string; children: ReactNode; actions?: ReactNode; className?: string; onProblem: (problem: string) => void }) {
  const files = useComposer((state) => state.files[draft]) ?? [];
  const setFiles = useComposer((state) => state.setFiles);
  const [isDragOver, setIsDragOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const attachButton = useRef<HTMLButtonElement>(null);
  useEffect(() => void restoreFiles(draft), [draft]);
  const attach = async (chosen: File[]) => onProblem((await attachFiles(draft, chosen)).join(" "));
  const removeFile = (index: number) => {
    void setFiles(draft, files.filter((_, other) => other !== index));
    attachButton.current?.focus();
  };
  const onDragOver = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return; // words that are dropped go into the field
    event.preventDefault();
    setIsDragOver(true);
  };
  const onDrop = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setIsDragOver(false);
    void attach([...event.dataTransfer.files]);
  };
  const onPaste = (event: ClipboardEvent) => {
    const copied = pastedFiles(event.clipboardData);
    if (copied.length === 0) return;
    event.preventDefault();
    void attach(copied);
  };
  return (
    <div onDragOver={onDragOver} onDragLeave={() => setIsDragOver(false)} onDrop={onDrop} onPaste={onPaste} className={cx("flex flex-col gap-1 rounded-md", className, isDragOver && "outline-2 outline-offset-4 outline-work-dot outline-dashed")}>
      {children}
      {files.length > 0 && (
        <div className="-mx-3">
          <AttachmentList files={files} onRemove={removeFile} />
        </div>
      )}
      <div className={cx("flex flex-wrap items-center gap-2 text-xs text-ink-3", actions && "p-2 max-sm:gap-1")}>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to attach"
          onChange={(event) => {
            void attach([...(event.target.files ?? [])]);
            event.target.value = ""; // the same file can be chosen again
          }}
        />
        <Button ref={attachButton} variant="ghost" size="sm" onClick={() => picker.current?.click()}>
          <Paperclip className="size-3.5" aria-hidden /> Attach files
        </Button>
        <span className="max-sm:hidden pointer-coarse:hidden">or drop them on the goal</span>
        <span className="flex-1" />
        {actions}
      </div>
    </div>
  );
}

/** Return the files of the goal, also those that an earlier page kept. */
export async function goalFiles(draft: string): Promise<Attachment[]> {
  await restoreFiles(draft);
  return currentFiles(draft);
}

/** Return the files as a request has them. */
export const asRequested = (files: readonly Attachment[]) => files.map(({ name, media_type, data }) => ({ name, media_type, data }));

/** Forget the files that a team has got. */
export const forgetGoalFiles = (draft: string, files: readonly Attachment[]): void => useComposer.getState().clear(draft, { text: "", files });
