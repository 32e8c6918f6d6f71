/** ResultPreview: a delivered file, or what a change made of a file, beside the list of results. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronLeft, Download, FolderOpen, X } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError, errorMessage, toApiError } from "@/api/client";
import { fetchApi } from "@/api/session";
import { Literal } from "@/reading/Literal";
import { EmptyState, ErrorPanel, Loading } from "@/ui";
import { screenHref } from "@/lib/screens";
import { DiffView } from "@/views/files/DiffView";
import { decodeText, fileQuery, rawHref } from "@/views/files/fileQuery";
import { Preview } from "@/views/files/Preview";
import { baseName } from "@/views/files/tree";
import type { Result } from "@/views/results/resultsQuery";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";

const CHANGE = "change/";

export function ResultPreview({ team, rest, results, suffix }: { team: string; rest: string; results: readonly Result[]; suffix: string }) {
  const listHref = screenHref(team, "results") + suffix;
  if (rest.startsWith(CHANGE)) {
    const id = rest.slice(CHANGE.length);
    const change = results.flatMap((result) => result.changes).find((one) => one.id === id);
    return (
      <Pane listHref={listHref} title={change?.path ?? "A change"}>
        <ChangeDiff team={team} id={id} hasBefore={change?.kind !== "made"} hasAfter={change?.kind !== "removed"} />
      </Pane>
    );
  }
  return <FilePane team={team} path={rest} listHref={listHref} />;
}

function FilePane({ team, path, listHref }: { team: string; path: string; listHref: string }) {
  const file = useQuery(fileQuery(team, path));
  const actions = (
    <>
      <Link to={screenHref(team, "files", path) as "/"} aria-label="Show in files" title="Show in files" className={iconStyle}>
        <FolderOpen className="size-4" />
      </Link>
      <a href={rawHref(team, path)} download={baseName(path)} aria-label="Download" title="Download" className={iconStyle}>
        <Download className="size-4" />
      </a>
    </>
  );
  return (
    <Pane listHref={listHref} title={baseName(path)} actions={actions}>
      {file.isPending ? (
        <Loading label="Opening the file" />
      ) : file.isError ? (
        <ErrorPanel title="The file could not be opened" detail={file.error instanceof ApiError && file.error.status === 404 ? "This file does not exist any more." : errorMessage(file.error)} onRetry={() => void file.refetch()} />
      ) : file.data.kind === "folder" ? (
        <EmptyState title="This is a folder">Select a file in the list.</EmptyState>
      ) : (
        <Preview file={file.data} href={rawHref(team, path)} />
      )}
    </Pane>
  );
}

const iconStyle = "flex size-8 shrink-0 items-center justify-center rounded-sm text-ink-2 hover:bg-hover pointer-coarse:size-11";

function Pane({ listHref, title, actions, children }: { listHref: string; title: string; actions?: ReactNode; children: ReactNode }) {
  const isNarrow = useNarrow(FOLD_PX);
  return (
    <section aria-label="Preview" className="flex min-w-0 flex-1 flex-col">
      <div className="flex h-11 shrink-0 items-center gap-1 border-b border-line pr-2 pl-4 max-lg:pl-1">
        {isNarrow && (
          <Link to={listHref as "/"} aria-label="Back to the results" className={iconStyle}>
            <ChevronLeft className="size-4" />
          </Link>
        )}
        <h2 dir="auto" className="min-w-0 flex-1 truncate text-sm font-medium" title={title}>
          <Literal text={title} keepEmoji />
        </h2>
        {actions}
        {!isNarrow && (
          <Link to={listHref as "/"} aria-label="Close the preview" title="Close the preview" className={iconStyle}>
            <X className="size-4" />
          </Link>
        )}
      </div>
      <div className="scroll min-h-0 flex-1" tabIndex={-1}>
        {children}
      </div>
    </section>
  );
}

/** Return what a file held before or after a change; an empty text where there was no file. */
async function fetchSide(team: string, id: string, side: "before" | "after", exists: boolean): Promise<string> {
  if (!exists) return "";
  const response = await fetchApi(`/api/teams/${encodeURIComponent(team)}/changes/${encodeURIComponent(id)}/${side}`);
  if (!response.ok) throw toApiError(response.status, await response.json().catch(() => null));
  const decoded = decodeText(new Uint8Array(await response.arrayBuffer()));
  if (decoded === null) throw new ApiError(0, "Not text", "This file is not text, so its lines cannot be compared.");
  return decoded.text;
}

function ChangeDiff({ team, id, hasBefore, hasAfter }: { team: string; id: string; hasBefore: boolean; hasAfter: boolean }) {
  const sides = useQuery({
    queryKey: ["folder-change", team, id],
    queryFn: () => Promise.all([fetchSide(team, id, "before", hasBefore), fetchSide(team, id, "after", hasAfter)]),
    retry: false,
  });
  if (sides.isPending) return <Loading label="Comparing the two versions" />;
  if (sides.isError) return <ErrorPanel title="The change cannot be shown" detail={errorMessage(sides.error)} />;
  return <DiffView before={sides.data[0]} after={sides.data[1]} label="What the change made of the file" />;
}
