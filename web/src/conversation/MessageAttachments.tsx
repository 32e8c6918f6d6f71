/** MessageAttachments: the files of a message. A picture is shown small; each file can be saved. */
import { FileText } from "lucide-react";
import { thumbnail } from "@/conversation/attachments";

export function MessageAttachments({ files }: { files: readonly { name: string; media_type: string; data: string }[] }) {
  return (
    <ul aria-label="Attached files" className="mt-1 flex flex-wrap items-end gap-2">
      {files.map((file, index) => {
        const picture = thumbnail(file);
        return (
          <li key={index} className="max-w-full rounded-sm border border-line bg-surface text-xs">
            {picture && <img src={picture} alt={`Picture ${file.name}`} className="max-h-48 max-w-full rounded-t-sm object-contain" />}
            {/* octet-stream and `download`: the browser saves the file and never renders it. */}
            <a dir="auto" download={file.name} href={`data:application/octet-stream;base64,${file.data}`} className="flex min-h-7 items-center gap-2 px-2 py-1 hover:underline pointer-coarse:min-h-11">
              <FileText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
              <span className="truncate">{file.name}</span>
            </a>
          </li>
        );
      })}
    </ul>
  );
}
