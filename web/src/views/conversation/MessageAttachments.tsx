/** MessageAttachments: the files of a message. A picture is shown small; each file of a message that arrived can be opened, and each can be saved. */
import { Link } from "@tanstack/react-router";
import { Download, FileText } from "lucide-react";
import { attachedPath, thumbnail } from "@/views/composer/attachments";
import { screenHref } from "@/lib/screens";

interface Props {
  files: readonly { name: string; media_type: string; data: string }[];
  /** The message, once the server has it. */
  sent?: { team: string; message: string };
}

export function MessageAttachments({ files, sent }: Props) {
  return (
    <ul aria-label="Attached files" className="mt-1 flex flex-wrap items-end gap-2">
      {files.map((file, index) => {
        const picture = thumbnail(file);
        const name = (
          <>
            <FileText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
            <span dir="auto" className="truncate">{file.name}</span>
          </>
        );
        return (
          <li key={index} className="max-w-full rounded-sm border border-line bg-surface text-xs">
            {picture && <img src={picture} alt={`Picture ${file.name}`} className="max-h-48 max-w-full rounded-t-sm object-contain" />}
            <div className="flex min-h-7 items-stretch pointer-coarse:min-h-11">
              {sent ? (
                <Link to={screenHref(sent.team, "files", attachedPath(sent.message, index, file.name)) as "/"} title="Open the file" className="flex min-w-0 flex-1 items-center gap-2 px-2 py-1 hover:underline">
                  {name}
                </Link>
              ) : (
                <span className="flex min-w-0 flex-1 items-center gap-2 px-2 py-1">{name}</span>
              )}
              {/* octet-stream and `download`: the browser saves the file and never renders it. */}
              <a download={file.name} href={`data:application/octet-stream;base64,${file.data}`} aria-label={`Download ${file.name}`} title="Download" className="flex w-7 shrink-0 items-center justify-center rounded-r-sm text-ink-2 hover:bg-hover pointer-coarse:w-11">
                <Download className="size-3.5" aria-hidden />
              </a>
            </div>
          </li>
        );
      })}
    </ul>
  );
}
