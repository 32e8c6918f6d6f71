/** Files: the team's folder as a tree with a preview. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, Copy, Download, FileText, Folder, FolderDown, Upload, Link2 } from "lucide-react";
import { type DragEvent, type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, errorMessage } from "@/api/client";
import { boardQuery } from "@/api/queries";
import { isAttached } from "@/views/composer/attachments";
import { copyText } from "@/lib/clipboard";
import { cx } from "@/lib/cx";
import { fullTime, fileSize, shortTime } from "@/lib/format";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { Button, EmptyState, IconButton, Loading, ErrorPanel } from "@/ui";
import { screenHref, type ScreenProps } from "@/lib/screens";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { showToast } from "@/parts/toast";
import { EntryIcon } from "@/views/files/EntryIcon";
import { Document, DocumentActions, type DocumentMode, useDocumentMode } from "@/views/files/Document";
import { archiveHref, type FileContent, fileQuery, rawHref } from "@/views/files/fileQuery";
import { UploadPanel } from "@/views/files/UploadPanel";
import { useUploads } from "@/views/files/uploads";
import { ancestors, type Entry, isGiven, isInternal, moveByKey, baseName, parentFolder, type TreeRow, treeRows } from "@/views/files/tree";

/** Titles to show instead of folder names: a task's folder is named by its id, so the task's title is shown. */
type FolderTitles = ReadonlyMap<string, string>;

export default function Files({ team, rest }: ScreenProps) {
  const path = rest.replace(/\/+$/, "");
  const isFolded = useNarrow(FOLD_PX);
  const file = useQuery(fileQuery(team.id, path));
  const board = useQuery(boardQuery(team.id));
  const titles = useMemo<FolderTitles>(() => new Map((board.data ?? []).map((node) => [`nodes/${node.id}`, node.title])), [board.data]);
  const isFile = path !== "" && file.data?.path === path && file.data.kind !== "folder";
  const showsTree = !isFolded || !isFile;
  const [showsInternal, setShowsInternal] = useState(false);
  const [mode, setMode] = useDocumentMode(path);
  const { uploads, add, retry, remove, clear } = useUploads(team.id);
  const picker = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const drag = {
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(true);
    },
    onDragLeave: (event: DragEvent) => event.currentTarget.contains(event.relatedTarget as Node | null) || setIsOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setIsOver(false);
      void add([...event.dataTransfer.files]);
    },
  };
  return (
    <>
      <ScreenHeader team={team} title="Files">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            void add([...(event.target.files ?? [])]);
            event.target.value = ""; // the same file can be chosen again
          }}
        />
        <Button onClick={() => picker.current?.click()} title="Upload files for the team, or drop them here">
          <Upload className="size-4" aria-hidden /> Upload
        </Button>
      </ScreenHeader>
      <UploadPanel uploads={uploads} onRetry={(upload, ifExists) => void retry(upload, ifExists)} onRemove={remove} onClear={clear} />
      <div className="relative flex min-h-0 flex-1" {...drag}>
        {isOver && <div className="pointer-events-none absolute inset-2 z-20 flex items-center justify-center rounded-md border-2 border-dashed border-ink bg-paper/80 text-md font-semibold">Drop the files here to upload them</div>}
        {showsTree && (
          <nav aria-label="Files of the team" className={cx("scroll shrink-0 py-2", isFolded ? "w-full" : "w-[300px] border-r border-line bg-rail")}>
            <Tree team={team.id} path={path} titles={titles} showsInternal={showsInternal} onShowInternal={setShowsInternal} />
          </nav>
        )}
        {(!isFolded || isFile) && (
          <section aria-label="Preview" className="flex min-w-0 flex-1 flex-col">
            <PathBar team={team.id} path={path} file={file.data} titles={titles} isFolded={isFolded} mode={mode} onMode={setMode} />
            <div className="scroll min-h-0 flex-1" tabIndex={-1}>
              {path === "" ? (
                <NoFileSelected />
              ) : file.isPending ? (
                <Loading label="Opening the file" />
              ) : file.isError ? (
                <ErrorPanel title={`${baseName(path)} could not be opened`} detail={openErrorText(file.error)} onRetry={() => void file.refetch()} />
              ) : file.data.kind === "folder" ? (
                <FolderList team={team.id} entries={file.data.entries} titles={titles} showsInternal={showsInternal} />
              ) : (
                <Document team={team.id} file={file.data} href={rawHref(team.id, path)} mode={mode} onMode={setMode} />
              )}
            </div>
          </section>
        )}
      </div>
    </>
  );
}

/** The server's 404 text tells agents which tool to use; people need another hint. */
const openErrorText = (error: Error): string =>
  error instanceof ApiError && error.status === 404 ? "This file does not exist: it may have been moved or renamed, or is not written yet. Look for it in the tree." : errorMessage(error);

function NoFileSelected() {
  return (
    <EmptyState icon={<FileText />} title="Select a file to read it">
      <p>
        <code>memory</code> holds the team's notes, <code>agents</code> each agent's own files, <code>user_uploads</code> what you uploaded or attached to a message, <code>folders</code> the folders that you gave the team, and <code>nodes</code> one folder for each
        task: its scratch files and its published result. Drop files here to upload them.
      </p>
    </EmptyState>
  );
}

interface PathBarProps {
  team: string;
  path: string;
  file: FileContent | undefined;
  titles: FolderTitles;
  isFolded: boolean;
  mode: DocumentMode;
  onMode: (mode: DocumentMode) => void;
}

function PathBar({ team, path, file, titles, isFolded, mode, onMode }: PathBarProps) {
  if (path === "") return null;
  const folders = ancestors(path);
  const isFile = file !== undefined && file.kind !== "folder";
  return (
    <div className="flex h-11 shrink-0 items-center gap-1 border-b border-line pr-2 pl-4 max-md:pl-1">
      {isFolded && (
        <Link to={screenHref(team, "files", parentFolder(path)) as "/"} aria-label="Back to the files" className="flex size-10 items-center justify-center">
          <ChevronLeft className="size-4" />
        </Link>
      )}
      <ol aria-label="Path" className="flex min-w-0 flex-1 items-center gap-1 text-sm">
        {folders.map((folder) => (
          <li key={folder} className="flex min-w-0 shrink items-center gap-1 max-md:hidden">
            <Link to={screenHref(team, "files", folder) as "/"} title={folder} dir="auto" className="truncate text-ink-2 hover:underline">
              {titles.get(folder) ?? baseName(folder)}
            </Link>
            <ChevronRight className="size-3.5 shrink-0 text-ink-3" aria-hidden />
          </li>
        ))}
        <li dir="auto" aria-current="page" className="min-w-0 shrink-0 truncate font-medium max-md:shrink" title={path}>
          {titles.get(path) ?? baseName(path)}
        </li>
      </ol>
      {isGiven(path) && <span className="mr-1 shrink-0 text-xs text-ink-3 max-md:hidden">a folder of yours, shown read-only</span>}
      {file?.kind === "folder" && !isGiven(path) && !isOfMessages(file.entries) && (
        <a href={archiveHref(team, { path })} download aria-label="Download this folder as zip" title="Download this folder as zip" className="flex size-8 items-center justify-center rounded-sm text-ink-2 hover:bg-hover pointer-coarse:size-10">
          <FolderDown className="size-4" />
        </a>
      )}
      {isFile && (
        <>
          {"bytes" in file && <span className="tabular mr-1 text-xs text-ink-3 max-md:hidden">{fileSize(file.bytes)}</span>}
          <DocumentActions file={file} mode={mode} onMode={onMode} />
          <IconButton label="Copy a link to this file" onClick={() => void copyText(location.href).then(() => showToast("The link is copied."))}>
            <Link2 className="size-4" />
          </IconButton>
          {file.kind === "text" && (
            <IconButton label="Copy the text" onClick={() => void copyText(file.text).then(() => showToast("The text is copied."))}>
              <Copy className="size-4" />
            </IconButton>
          )}
          <a href={rawHref(team, path)} download={baseName(path)} aria-label="Download" title="Download" className="flex size-8 items-center justify-center rounded-sm text-ink-2 hover:bg-hover pointer-coarse:size-10">
            <Download className="size-4" />
          </a>
        </>
      )}
    </div>
  );
}

/** Whether all files of a folder came with messages: such a folder is not on the disk, and has no zip file. */
const isOfMessages = (entries: readonly Entry[]): boolean => entries.length > 0 && entries.every((entry) => isAttached(entry.path));

/** Copies and versions that the runtime keeps are shown where they belong: with the changes, and in a file's history. */
const isShown = (entry: Entry): boolean => entry.path !== "history";

interface TreeProps {
  team: string;
  path: string;
  titles: FolderTitles;
  showsInternal: boolean;
  onShowInternal: (shows: boolean) => void;
}

function Tree({ team, path, titles, showsInternal, onShowInternal }: TreeProps) {
  const navigate = useNavigate();
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set([...ancestors(path), path]));
  // Expand the folders above the shown file, also when a link from another screen led to it.
  useEffect(() => setOpen((now) => new Set([...now, ...ancestors(path)])), [path]);
  const folders = useMemo(() => ["", ...[...open].filter((folder) => folder !== "")], [open]);
  const loaded = useQueries({
    queries: folders.map((folder) => fileQuery(team, folder)),
    combine: (all) => ({ all, first: all[0]! }),
  });
  const listings = new Map<string, Entry[]>();
  let hasInternal = false;
  loaded.all.forEach((one, index) => {
    if (one.data?.kind !== "folder") return;
    const entries = one.data.entries.filter(isShown);
    hasInternal ||= entries.some(isInternal);
    // A link may lead to an internal file: then it is in the tree, too.
    listings.set(folders[index]!, entries.filter((entry) => showsInternal || !isInternal(entry) || `${path}/`.startsWith(`${entry.path}/`)));
  });
  const rows = treeRows(listings, open);
  const [focusedPath, setFocusedPath] = useState<string | null>(null);
  const tree = useRef<HTMLUListElement>(null);
  const current = rows.findIndex((row) => row.entry.path === (focusedPath ?? path));
  const tabStop = Math.max(0, current);

  function toggle(folder: string) {
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(folder)) next.add(folder);
      return next;
    });
  }
  function activate(row: TreeRow) {
    setFocusedPath(row.entry.path);
    if (row.isFolder) toggle(row.entry.path);
    else void navigate({ to: screenHref(team, "files", row.entry.path) as "/" });
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const row = rows[tabStop];
    if (row && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      return activate(row);
    }
    const move = moveByKey(rows, tabStop, event.key);
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    if ("toggle" in move) return toggle(move.toggle);
    setFocusedPath(rows[move.to]!.entry.path);
    tree.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[move.to]?.focus();
  }

  if (loaded.first.isPending) return <Loading label="Reading the folder" />;
  if (loaded.first.isError) return <ErrorPanel title="The files could not be listed" detail={errorMessage(loaded.first.error)} onRetry={() => void loaded.first.refetch()} />;
  if (rows.length === 0) return <EmptyState icon={<Folder />} title="No files yet">Files that the team writes and publishes appear here.</EmptyState>;
  return (
    <>
      <ul ref={tree} role="tree" aria-label="Files" onKeyDown={onKeyDown} className="px-2">
        {rows.map((row, index) => {
          const isCurrent = row.entry.path === path;
          const title = titles.get(row.entry.path);
          const isLoading = row.isOpen && !listings.has(row.entry.path);
          return (
            <li
              key={row.entry.path}
              role="treeitem"
              aria-busy={isLoading || undefined}
              aria-level={row.depth + 1}
              aria-posinset={row.position}
              aria-setsize={row.setSize}
              aria-expanded={row.isFolder ? row.isOpen : undefined}
              aria-selected={isCurrent}
              tabIndex={index === tabStop ? 0 : -1}
              onClick={() => activate(row)}
              onFocus={() => setFocusedPath(row.entry.path)}
              title={title ? row.entry.path : undefined}
              style={{ paddingLeft: 8 + row.depth * 16 }}
              className={cx("flex h-7 cursor-pointer items-center gap-1.5 rounded-sm pr-2 text-sm outline-offset-[-2px] pointer-coarse:h-11", isCurrent ? "bg-press font-medium" : "hover:bg-hover")}
            >
              <ChevronRight className={cx("size-3.5 shrink-0 text-ink-3", row.isOpen && "rotate-90", !row.isFolder && "invisible")} aria-hidden />
              <EntryIcon entry={row.entry} isOpen={row.isOpen} />
              <span dir="auto" className="min-w-0 flex-1 truncate">{title ?? row.name}</span>
              {isLoading && <span className="text-xs text-ink-3">Loading…</span>}
            </li>
          );
        })}
      </ul>
      {hasInternal && (
        <button type="button" onClick={() => onShowInternal(!showsInternal)} className="mx-2 mt-2 flex min-h-7 items-center rounded-sm px-2 text-xs text-ink-2 hover:bg-hover pointer-coarse:min-h-11">
          {showsInternal ? "Hide internal files" : "Show internal files"}
        </button>
      )}
    </>
  );
}

function FolderList({ team, entries, titles, showsInternal }: { team: string; entries: Entry[]; titles: FolderTitles; showsInternal: boolean }) {
  const rows = treeRows(new Map([["", entries.filter((entry) => showsInternal || !isInternal(entry))]]), new Set());
  if (rows.length === 0) return <EmptyState icon={<Folder />} title={entries.length > 0 ? "This folder has only internal files" : "This folder is empty"} />;
  return (
    <ul className="p-3">
      {rows.map(({ entry, name }) => (
        <li key={entry.path}>
          <Link to={screenHref(team, "files", entry.path) as "/"} className="flex min-h-9 items-center gap-2.5 rounded-sm px-2.5 text-sm hover:bg-hover pointer-coarse:min-h-11">
            <EntryIcon entry={entry} />
            <span dir="auto" className="min-w-0 flex-1 truncate">{titles.get(entry.path) ?? name}</span>
            {entry.kind === "file" && <span className="tabular text-xs text-ink-3">{fileSize(entry.size)}</span>}
            <time dateTime={entry.modified} title={fullTime(entry.modified)} className="tabular w-16 text-right text-xs text-ink-3 max-md:hidden">
              {shortTime(entry.modified)}
            </time>
          </Link>
        </li>
      ))}
    </ul>
  );
}
