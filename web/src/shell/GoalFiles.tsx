/** GoalFiles: the files that a person gives a new team with its goal. They are kept as those of a message, and sent to the coordinator as soon as the team exists. */
import { Paperclip } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { AttachmentList } from "@/conversation/AttachmentList";
import { attachFiles, restoreFiles, useComposer } from "@/conversation/composerState";
import { cx } from "@/lib/cx";
import { sendMessage } from "@/live";
import { Button } from "@/ui";

/** Under this key the files are kept until a team gets them. */
const KEY = "new-team";

/** The field of the goal, on which files can be dropped, and the files below it. */
export function GoalFiles({ children, onProblem }: { children: ReactNode; onProblem: (problem: string) => void }) {
  const files = useComposer((state) => state.files[KEY]) ?? [];
  const setFiles = useComposer((state) => state.setFiles);
  const [isDragOver, setIsDragOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => void restoreFiles(KEY), []);
  const attach = async (chosen: File[]) => onProblem((await attachFiles(KEY, chosen)).join(" "));
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
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void attach([...event.clipboardData.files]);
  };
  return (
    <div onDragOver={onDragOver} onDragLeave={() => setIsDragOver(false)} onDrop={onDrop} onPaste={onPaste} className={cx("flex flex-col gap-1 rounded-md", isDragOver && "outline-2 outline-offset-4 outline-work-dot outline-dashed")}>
      {children}
      {files.length > 0 && (
        <div className="-mx-3">
          <AttachmentList files={files} onRemove={(index) => setFiles(KEY, files.filter((_, other) => other !== index))} />
        </div>
      )}
      <div className="flex items-center gap-2 text-xs text-ink-3">
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
        <Button variant="ghost" size="sm" onClick={() => picker.current?.click()}>
          <Paperclip className="size-3.5" aria-hidden /> Attach files
        </Button>
        <span className="pointer-coarse:hidden">or drop them on the goal</span>
      </div>
    </div>
  );
}

/** Send the files to the coordinator of the new team, which hears of them in its work. They wait in the browser if the server cannot take them. */
export function sendGoalFiles(coordinator: string): void {
  const { files, clear } = useComposer.getState();
  const attached = files[KEY] ?? [];
  if (attached.length === 0) return;
  const words = attached.length === 1 ? "This file belongs to the goal." : "These files belong to the goal.";
  sendMessage(coordinator, words, "nudge", attached.map(({ name, media_type, data }) => ({ name, media_type, data })));
  clear(KEY);
}
