/** UploadPanel: the files that are being sent, those that are there, and those that need a decision. */
import { Check, CircleAlert, X } from "lucide-react";
import { Literal } from "@/reading/Literal";
import { fileSize, plural } from "@/lib/format";
import { Button, IconButton } from "@/ui";
import { type IfExists, MAX_UPLOAD_BYTES, type Upload } from "@/views/files/uploads";

interface Props {
  uploads: readonly Upload[];
  onRetry: (upload: Upload, ifExists: IfExists) => void;
  onRemove: (id: number) => void;
  onClear: () => void;
}

export function UploadPanel({ uploads, onRetry, onRemove, onClear }: Props) {
  if (uploads.length === 0) return null;
  const isBusy = uploads.some(({ state }) => state === "sending" || state === "waiting");
  const done = uploads.filter(({ state }) => state === "done").length;
  return (
    <section aria-label="Uploads" className="max-h-[50%] shrink-0 overflow-auto border-b border-line bg-sunken px-4 py-2">
      <div className="flex items-center gap-2">
        <p role="status" className="flex-1 text-sm font-medium">
          {isBusy ? `Uploading ${plural(uploads.length, "file")}…` : `${done} of ${plural(uploads.length, "file")} uploaded.${done > 0 ? " Every agent of the team may read them: name a file in your message." : ""}`}
        </p>
        {!isBusy && (
          <IconButton label="Close the list of uploads" onClick={onClear}>
            <X className="size-4" />
          </IconButton>
        )}
      </div>
      <ul>
        {uploads.map((upload) => (
          <li key={upload.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1 text-sm">
            {upload.state === "done" ? <Check className="size-4 text-done" aria-hidden /> : upload.state === "failed" || upload.state === "taken" ? <CircleAlert className="size-4 text-fail" aria-hidden /> : <span className="size-4" />}
            <span dir="auto" className="min-w-0 truncate font-medium">
              <Literal text={upload.file.name} keepEmoji />
            </span>
            <span className="tabular text-xs text-ink-3">{fileSize(upload.file.size)}</span>
            {(upload.state === "sending" || upload.state === "waiting") && <progress aria-label={`Upload of ${upload.file.name}`} value={upload.sent} max={1} className="h-1.5 w-32" />}
            {upload.text && (
              <span dir="auto" className={upload.state === "done" ? "text-xs text-ink-2" : "text-xs text-fail"}>
                {upload.text}
              </span>
            )}
            {upload.state === "taken" && (
              <span className="flex gap-1.5">
                <Button size="sm" onClick={() => onRetry(upload, "keep_both")}>
                  Keep both
                </Button>
                <Button size="sm" onClick={() => onRetry(upload, "replace")} title="The old file stays in the history">
                  Replace
                </Button>
                <Button size="sm" variant="ghost" onClick={() => onRemove(upload.id)}>
                  Skip
                </Button>
              </span>
            )}
            {upload.state === "failed" && upload.file.size <= MAX_UPLOAD_BYTES && (
              <Button size="sm" onClick={() => onRetry(upload, "refuse")}>
                Try again
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
