/** AttachmentList: the files of a message that is being written, with a picture of each picture. */
import { FileText, X } from "lucide-react";
import { fileSize } from "@/lib/format";
import { type Attachment, thumbnail } from "@/views/composer/attachments";
import { Button } from "@/ui";

interface Props {
  files: Attachment[];
  onRemove: (index: number) => void;
  /** Put a pasted text into the message after all. */
  onInsert?: (index: number) => void;
}

export function AttachmentList({ files, onRemove, onInsert }: Props) {
  return (
    <ul aria-label="Attached files" className="flex flex-wrap gap-2 px-3 py-1">
      {files.map((file, index) => (
        <li key={index} className="flex max-w-full items-center gap-2 rounded-sm border border-line bg-sunken py-1 pr-1 pl-1.5 text-xs">
          <Thumbnail file={file} />
          <span className="min-w-0">
            <span dir="auto" className="block truncate">
              {file.pasted === undefined ? file.name : "Pasted text"}
            </span>
            <span className="block text-ink-3">
              {file.pasted === undefined ? fileSize(file.bytes) : `${file.pasted.length.toLocaleString("en")} characters, sent as a file`}
            </span>
          </span>
          {onInsert && file.pasted !== undefined && (
            <Button size="sm" variant="ghost" onClick={() => onInsert(index)}>
              Put into the message
            </Button>
          )}
          <button type="button" aria-label={`Remove ${file.name}`} className="flex size-7 shrink-0 items-center justify-center rounded-sm hover:bg-hover pointer-coarse:size-11" onClick={() => onRemove(index)}>
            <X className="size-3.5" />
          </button>
        </li>
      ))}
    </ul>
  );
}

function Thumbnail({ file }: { file: Attachment }) {
  const picture = thumbnail(file);
  return picture ? <img src={picture} alt={`Preview of ${file.name}`} className="size-10 shrink-0 rounded-xs object-cover" /> : <FileText className="ml-1 size-4 shrink-0 text-ink-3" aria-hidden />;
}
