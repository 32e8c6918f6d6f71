/** EntryIcon: the icon of a file or folder, by its name. */
import { File, FileText, Folder, FolderOpen, Image, Table2 } from "lucide-react";
import { previewKind } from "@/views/files/previewKind";
import type { Entry } from "@/views/files/tree";

export function EntryIcon({ entry, isOpen = false }: { entry: Entry; isOpen?: boolean }) {
  const iconStyle = "size-4 shrink-0 text-ink-3";
  if (entry.kind === "folder") return isOpen ? <FolderOpen className={iconStyle} aria-hidden /> : <Folder className={iconStyle} aria-hidden />;
  if (/\.(png|jpe?g|gif|webp|svg)$/i.test(entry.path)) return <Image className={iconStyle} aria-hidden />;
  const kind = previewKind(entry.path);
  const Icon = kind === "csv" ? Table2 : kind === "markdown" ? FileText : File;
  return <Icon className={iconStyle} aria-hidden />;
}
