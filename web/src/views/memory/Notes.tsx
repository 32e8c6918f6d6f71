/** Notes: the files that the team and its agents write and read again before they work. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { BookOpen, ChevronLeft, FolderOpen, Search } from "lucide-react";
import { useMemo, useState } from "react";
import { errorMessage, type Team } from "@/api/client";
import { queryKeys, queryClient } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize, fullTime, shortTime } from "@/lib/format";
import { EmptyState, Input, Loading, ErrorPanel } from "@/ui";
import { screenHref } from "@/lib/screens";
import { fileQuery, rawHref } from "@/views/files/fileQuery";
import { Document, DocumentActions, useDocumentMode } from "@/views/files/Document";
import { type Entry, baseName } from "@/views/files/tree";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";

const TEAM_FILES = ["SOUL.md", "GOAL.md", "PLAN.md", "MEMORY.md"];
const FILE_TITLES: Record<string, string> = {
  "SOUL.md": "Character of the team",
  "GOAL.md": "Goal",
  "PLAN.md": "Plan",
  "MEMORY.md": "Memory, in every prompt",
  "IDENTITY.md": "Character of the agent",
  "NOTEBOOK.md": "Notebook",
};
const MAX_FOLDERS = 80;

interface Group {
  title: string;
  files: Entry[];
}

/** Return the team's notes in groups. It walks the folders level by level, up to `MAX_FOLDERS`. */
async function listNotes(team: string): Promise<Group[]> {
  const listFolder = async (path: string): Promise<Entry[]> => {
    const file = await queryClient.fetchQuery({ ...fileQuery(team, path), staleTime: 1000 });
    return file.kind === "folder" ? file.entries : [];
  };
  const root = await listFolder("");
  const groups: Group[] = [{ title: "The team", files: TEAM_FILES.flatMap((name) => root.filter((entry) => entry.path === name)) }];
  let level = ["memory", "agents"].filter((name) => root.some((entry) => entry.path === name && entry.kind === "folder"));
  const folders: { folder: string; entries: Entry[] }[] = [];
  while (level.length > 0 && folders.length < MAX_FOLDERS) {
    const batch = await Promise.all(level.slice(0, MAX_FOLDERS - folders.length).map(async (folder) => ({ folder, entries: await listFolder(folder) })));
    folders.push(...batch);
    level = batch.flatMap(({ entries }) => entries.filter((entry) => entry.kind === "folder").map((entry) => entry.path));
  }
  // The team's notes come before those of single agents.
  folders.sort((a, b) => (isShared(b) ? 1 : 0) - (isShared(a) ? 1 : 0) || (a.folder < b.folder ? -1 : 1));
  for (const { folder, entries } of folders) {
    const files = entries.filter((entry) => entry.kind === "file").sort((a, b) => (a.modified < b.modified ? 1 : -1));
    groups.push({ title: titleOf(folder), files });
  }
  return groups.filter((group) => group.files.length > 0);
}

const isShared = ({ folder }: { folder: string }): boolean => folder.startsWith("memory");

function titleOf(folder: string): string {
  if (folder === "memory") return "Notes";
  const [top, ...below] = folder.split("/");
  return `${capitalize(below[0] ?? "")}${below.length > 1 ? ` / ${below.slice(1).join(" / ")}` : ""}${top === "agents" ? "'s files" : ""}`;
}

export function Notes({ team, path }: { team: Team; path: string }) {
  const isFolded = useNarrow(FOLD_PX);
  const [text, setText] = useState("");
  const [mode, setMode] = useDocumentMode(path);
  const notes = useQuery({ queryKey: queryKeys.memory(team.id), queryFn: () => listNotes(team.id) });
  const file = useQuery({ ...fileQuery(team.id, path), enabled: path !== "" });
  const groups = useMemo(() => {
    const needle = text.trim().toLowerCase();
    return (notes.data ?? [])
      .map((group) => ({ ...group, files: group.files.filter((file) => !needle || `${group.title} ${file.path} ${FILE_TITLES[baseName(file.path)] ?? ""}`.toLowerCase().includes(needle)) }))
      .filter((group) => group.files.length > 0);
  }, [notes.data, text]);
  return (
    <div className="flex min-h-0 flex-1">
      {(!isFolded || !path) && (
        <nav aria-label="Notes" className={cx("flex shrink-0 flex-col", isFolded ? "w-full" : "w-[300px] border-r border-line bg-rail")}>
          <div className="relative shrink-0 p-3">
            <Search className="absolute top-1/2 left-5 size-4 -translate-y-1/2 text-ink-3" aria-hidden />
            <Input type="search" aria-label="Find a note" placeholder="Find a note by name" value={text} onChange={(event) => setText(event.target.value)} className="h-8 pl-8" />
          </div>
          <div className="scroll min-h-0 flex-1 px-2 pb-3">
            {notes.isPending ? (
              <Loading label="Loading the notes" />
            ) : notes.isError ? (
              <ErrorPanel title="The notes could not be listed" detail={errorMessage(notes.error)} onRetry={() => void notes.refetch()} />
            ) : groups.length === 0 ? (
              <EmptyState title={text ? "No note matches" : "No notes yet"}>{text ? "" : "Notes that agents write appear here."}</EmptyState>
            ) : (
              groups.map((group) => (
                <section key={group.title} aria-label={group.title} className="mb-3">
                  <h2 dir="auto" className="px-2 py-1 text-xs font-semibold text-ink-2">{group.title}</h2>
                  <ul>
                    {group.files.map((file) => (
                      <li key={file.path}>
                        <Link
                          to={screenHref(team.id, "memory", file.path) as "/"}
                          aria-current={file.path === path ? "page" : undefined}
                          title={file.path}
                          className={cx("flex min-h-8 items-center gap-2 rounded-sm px-2 text-sm pointer-coarse:min-h-11", file.path === path ? "bg-press font-medium" : "hover:bg-hover")}
                        >
                          <span className="min-w-0 flex-1 truncate">{FILE_TITLES[baseName(file.path)] ?? baseName(file.path).replace(/\.md$/, "")}</span>
                          <time dateTime={file.modified} title={fullTime(file.modified)} className="tabular text-xs text-ink-3">
                            {shortTime(file.modified)}
                          </time>
                        </Link>
                      </li>
                    ))}
                  </ul>
                </section>
              ))
            )}
          </div>
        </nav>
      )}
      {(!isFolded || path) && (
        <section aria-label="Note" className="flex min-w-0 flex-1 flex-col">
          {path && (
            <div className="flex h-11 shrink-0 items-center gap-2 border-b border-line pr-4 pl-4 text-sm max-md:pl-1">
              {isFolded && (
                <Link to={screenHref(team.id, "memory") as "/"} aria-label="Back to the notes" className="flex size-10 items-center justify-center">
                  <ChevronLeft className="size-4" />
                </Link>
              )}
              <span className="min-w-0 flex-1 truncate text-ink-2">{path}</span>
              <DocumentActions file={file.data} mode={mode} onMode={setMode} />
              <Link to={screenHref(team.id, "files", path) as "/"} className="flex min-h-6 items-center gap-1 text-xs text-ink-2 hover:underline">
                <FolderOpen className="size-3.5" aria-hidden /> Show in files
              </Link>
            </div>
          )}
          <div className="scroll min-h-0 flex-1" tabIndex={-1}>
            {!path ? (
              <EmptyState icon={<BookOpen />} title="What the team remembers">
                Notes are plain files: the team's character, goal and plan, its notes, and each agent's notebook. Agents read them before they
                work. Select one to read it.
              </EmptyState>
            ) : file.isPending ? (
              <Loading label="Opening the note" />
            ) : file.isError ? (
              <ErrorPanel title="The note could not be opened" detail={errorMessage(file.error)} onRetry={() => void file.refetch()} />
            ) : file.data.kind === "folder" ? (
              <EmptyState title="This is a folder">Select a note in the list.</EmptyState>
            ) : (
              <Document team={team.id} file={file.data} href={rawHref(team.id, path)} mode={mode} onMode={setMode} />
            )}
          </div>
        </section>
      )}
    </div>
  );
}
