/** PublishedFiles: the files that a piece of work has published, with links to read and to download them. */
import { Link } from "@tanstack/react-router";
import { Download } from "lucide-react";
import type { Schemas } from "@/api/client";
import { Literal } from "@/reading/Literal";
import { cx } from "@/lib/cx";
import { fileSize } from "@/lib/format";
import { screenHref } from "@/lib/screens";
import { EntryIcon } from "@/views/files/EntryIcon";
import { archiveHref, rawHref } from "@/views/files/fileQuery";
import { baseName } from "@/views/files/tree";

const linkStyle = "underline decoration-line-2 underline-offset-2 hover:decoration-ink";

interface Props {
  team: string;
  node: string;
  files: readonly Schemas["FileView"][];
  /** How many files there are; `files` may be the first of them. */
  count: number;
  /** The path that the preview beside the list shows. */
  openPath?: string;
  /** The query of the screen's address, which links keep. */
  suffix?: string;
}

export function PublishedFiles({ team, node, files, count, openPath = "", suffix = "" }: Props) {
  const published = `nodes/${node}/published`;
  if (files.length === 0) return null;
  return (
    <div className="mt-3">
      <ul className="divide-y divide-line rounded-sm border border-line">
        {files.map((file) => (
          <FileRow key={file.path} team={team} file={file} name={file.path.slice(published.length + 1)} isOpen={file.path === openPath} suffix={suffix} />
        ))}
      </ul>
      <p className="mt-1.5 flex flex-wrap items-center gap-x-3 text-xs text-ink-3">
        {count > files.length && (
          <Link to={screenHref(team, "files", published) as "/"} className={cx(linkStyle, "inline-flex min-h-6 items-center")}>
            All {count} files
          </Link>
        )}
        {count > 1 && (
          <a href={archiveHref(team, { path: published })} download className={cx(linkStyle, "inline-flex min-h-6 items-center pointer-coarse:min-h-11")}>
            Download these as zip
          </a>
        )}
      </p>
    </div>
  );
}

export function FileRow({ team, file, name, isOpen, suffix, note }: { team: string; file: Schemas["FileView"]; name: string; isOpen: boolean; suffix: string; note?: string }) {
  return (
    <li className={cx("flex items-center", isOpen && "bg-press")}>
      <Link to={(screenHref(team, "results", file.path) + suffix) as "/"} aria-current={isOpen ? "true" : undefined} className="flex min-h-9 min-w-0 flex-1 items-center gap-2 px-3 text-sm hover:bg-hover pointer-coarse:min-h-11">
        <EntryIcon entry={file} />
        <span className="min-w-0 flex-1">
          <span dir="auto" className="block truncate">
            <Literal text={name} keepEmoji />
          </span>
          {note && <span className="block truncate text-xs text-ink-3">{note}</span>}
        </span>
        <span className="tabular text-xs text-ink-3">{fileSize(file.size)}</span>
      </Link>
      <a href={rawHref(team, file.path)} download={baseName(file.path)} aria-label={`Download ${baseName(file.path)}`} title="Download" className="flex size-9 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover pointer-coarse:size-11">
        <Download className="size-4" aria-hidden />
      </a>
    </li>
  );
}

